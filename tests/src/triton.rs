//! Triton's own server, out of the package that `cargo xtask runtimes --triton` fetches, to compare
//! responses with.

use crate::http1::{Connection, Response, request};
use crate::install::triton;
use crate::process::{Process, TIMEOUT};
use rustix::process::Signal;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Loopback addresses of HTTP, gRPC and metrics. Triton refuses one address for two of them, even
/// with the port 0.
const HOSTS: [[u8; 4]; 3] = [[127, 0, 0, 1], [127, 0, 0, 2], [127, 0, 0, 3]];

/// A running Triton that listens on free loopback ports.
pub struct Triton {
    process: Process,
    addresses: [String; 3],
}

impl Triton {
    /// Serves these models with the backends of this folder, and waits until it listens.
    #[track_caller]
    pub fn start(models: &Path, backends: &Path, flags: &[&str]) -> Self {
        let folder = triton();
        let joined = |flag: &str, path: &Path| {
            let mut word = OsString::from(flag);
            word.push(path);
            word
        };
        let mut command = Command::new(folder.join("bin/tritonserver"));
        command.arg(joined("--model-repository=", models));
        command.arg(joined("--backend-directory=", backends));
        for (kind, [a, b, c, d]) in ["http", "grpc", "metrics"].into_iter().zip(HOSTS) {
            command.arg(format!("--{kind}-address={a}.{b}.{c}.{d}"));
            command.arg(format!("--{kind}-port=0"));
        }
        command.args(["--allow-gpu-metrics=false", "--exit-on-error=false"]).args(flags);
        let process = Process::spawn(command);
        // The last line that it prints. Its lines have the ports that it was given: 0.
        process.stderr_until("line `Started Metrics Service`", |log| {
            log.contains("Started Metrics Service").then_some(())
        });
        let addresses = HOSTS.map(|host| {
            let [a, b, c, d] = host;
            format!("{a}.{b}.{c}.{d}:{}", listening_port(&process, host))
        });
        Triton { process, addresses }
    }

    /// The folder of the Python backend, in the shape of Triton's container.
    pub fn backends() -> PathBuf {
        triton().join("backends")
    }

    /// HTTP, gRPC, metrics.
    pub fn addresses(&self) -> [&str; 3] {
        [&self.addresses[0], &self.addresses[1], &self.addresses[2]]
    }

    pub fn log(&self) -> String {
        self.process.stderr()
    }

    #[track_caller]
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> Response {
        Connection::open(&self.addresses[0]).send(bytes).response()
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.send(request("GET", path, &[], b""))
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Response {
        self.send(request("POST", path, &[], body.as_ref()))
    }
}

/// Ends Triton in order: its Python backend then removes its processes and its shared memory.
impl Drop for Triton {
    fn drop(&mut self) {
        if !self.process.has_ended() {
            self.process.signal(Signal::TERM);
            self.process.wait(TIMEOUT);
        }
    }
}

/// The TCP port on which the process listens at this address. Other processes may listen there too.
#[track_caller]
fn listening_port(process: &Process, host: [u8; 4]) -> u16 {
    let proc = format!("/proc/{}", process.pid().as_raw_nonzero());
    let files = fs::read_dir(format!("{proc}/fd")).unwrap_or_else(|e| panic!("{proc}/fd: {e}"));
    let sockets: Vec<String> = files
        .flatten()
        .filter_map(|file| {
            let link = fs::read_link(file.path()).ok()?;
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect();
    let host = format!("{:08X}", u32::from_le_bytes(host));
    // The gRPC library listens on IPv6 sockets, with IPv4 addresses as their last four bytes.
    let read = |table| fs::read_to_string(format!("{proc}/net/{table}")).unwrap_or_default();
    let text = read("tcp") + &read("tcp6");
    // Fields: number, local address, remote address, state (0A: listening), …; the tenth is the
    // inode.
    let port = text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = fields.get(1)?.split_once(':')?;
        let listens =
            address.ends_with(&host) && fields[3] == "0A" && sockets.iter().any(|s| fields[9] == s);
        if listens { u16::from_str_radix(port, 16).ok() } else { None }
    });
    port.unwrap_or_else(|| panic!("no listening socket for {host} in {proc}/net\n{process}"))
}
