//! A real Envoy with deploy/envoy/envoy.yaml, its addresses replaced. TRTSERVER_ENVOY names the
//! program, else that of `target/python/envoy` is used.

use crate::compile::folder;
use crate::http1::request;
use crate::{Connection, Process, Running, TIMEOUT, root};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The proxy, ended when this is dropped.
pub struct Envoy {
    _process: Process,
    _folder: TempDir,
    admin: String,
    address: String,
}

impl Envoy {
    /// Envoy before three servers, once it listens.
    #[track_caller]
    pub fn start(servers: &[&Running]) -> Self {
        let folder = folder();
        let (config, admin) = (folder.path().join("envoy.yaml"), folder.path().join("admin"));
        fs::write(&config, configuration(servers)).unwrap_or_else(|e| panic!("{e}"));
        let mut command = Command::new(program());
        command.arg("-c").arg(&config).arg("--admin-address-path").arg(&admin);
        command.args(["--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"]);
        let process = Process::spawn(command);
        let wait_for = |what: &str, find: &dyn Fn() -> Option<String>| {
            let begin = Instant::now();
            loop {
                if let Some(found) = find() {
                    return found;
                }
                let late = begin.elapsed() > TIMEOUT || process.has_ended();
                assert!(!late, "Envoy does not tell its {what}:\n{}", process.stderr());
                thread::sleep(Duration::from_millis(20));
            }
        };
        let listed = || fs::read_to_string(&admin).ok().filter(|text| text.contains(':'));
        let admin = wait_for("admin address", &listed);
        let listener = || {
            let listeners = get(&admin, "/listeners")?;
            listeners.lines().find_map(|line| Some(line.strip_prefix("trtserver::")?.to_owned()))
        };
        let address = wait_for("listener", &listener);
        Self { _process: process, _folder: folder, admin, address }
    }

    /// REST and gRPC.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits until both clusters send requests to the server.
    #[track_caller]
    pub fn wait_for(&self, server: &Running) {
        let healthy = [("trtserver_http", server.http()), ("trtserver_grpc", server.grpc())]
            .map(|(cluster, address)| format!("{cluster}::{address}::health_flags::healthy"));
        let begin = Instant::now();
        loop {
            let clusters = get(&self.admin, "/clusters").unwrap_or_default();
            if healthy.iter().all(|line| clusters.lines().any(|found| found == line)) {
                return;
            }
            assert!(begin.elapsed() < TIMEOUT, "no {healthy:?} in\n{clusters}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The body of an answer of Envoy's admin interface.
fn get(admin: &str, path: &str) -> Option<String> {
    let close = [("Connection", "close")];
    let mut connection = Connection::try_open(admin).ok()?;
    let response = connection.send(request("GET", path, &close, b"")).try_response()?;
    (response.status == 200).then(|| response.text())
}

/// The configuration that users get, with the ports of these servers, and free ones for Envoy.
#[track_caller]
fn configuration(servers: &[&Running]) -> String {
    let path = root().join("deploy/envoy/envoy.yaml");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text = text.replace("port_value: 9901", "port_value: 0");
    let text = text.replace("0.0.0.0, port_value: 8080", "127.0.0.1, port_value: 0");
    let port = |address: &str| format!("port_value: {}", address.rsplit(':').next().unwrap_or(""));
    let lines = text.lines().map(|line| {
        let number = (1..=servers.len()).find(|number| line.contains(&format!("server-{number},")));
        let Some(number) = number else { return line.to_owned() };
        let server = servers[number - 1];
        line.replace(&format!("server-{number}"), "127.0.0.1")
            .replace("port_value: 8000", &port(server.http()))
            .replace("port_value: 8001", &port(server.grpc()))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let fits = ["8000", "8001", "8080", "9901"]
        .iter()
        .all(|old| !text.contains(&format!("port_value: {old}")));
    assert!(fits, "{} has addresses that this test does not know", path.display());
    text
}

#[track_caller]
fn program() -> PathBuf {
    if let Some(program) = std::env::var_os("TRTSERVER_ENVOY") {
        return root().join(program);
    }
    let program = root().join("target/python/envoy/bin/envoy");
    assert!(
        program.is_file(),
        "no Envoy at {}\n  `cargo xtask soak -- --rolling-restart` installs it, or TRTSERVER_ENVOY=PROGRAM names one",
        program.display()
    );
    program
}
