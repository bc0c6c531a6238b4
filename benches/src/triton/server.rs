//! Triton's server as a child process.

use super::install;
use crate::Result;
use crate::load::{self, Target};
use crate::options::Options;
use crate::process::Silent;
use crate::requests::{Frontend, Work, exchanges};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// Triton's server as a child process.
pub struct Triton {
    pub target: Target,
    _process: Silent,
}

impl Triton {
    /// It is ready when it answers the first request of `work`.
    pub fn start(
        options: &Options,
        models: &Path,
        backends: &Path,
        flags: &[String],
        work: Work,
    ) -> Result<Self> {
        let [http, grpc] = free_ports()?;
        let mut command = Command::new(install::program(options));
        command
            .arg(format!("--model-repository={}", models.display()))
            .arg(format!("--backend-directory={}", backends.display()))
            .args(["--http-address=127.0.0.1", "--grpc-address=127.0.0.1"])
            .arg(format!("--http-port={}", http.port()))
            .arg(format!("--grpc-port={}", grpc.port()))
            .args(["--allow-metrics=false", "--log-info=false", "--log-warning=false"])
            .args(flags);
        let process = Silent::start(command)?;
        let target = Target { http: Some(http), grpc: Some(grpc), pid: Some(process.id()) };
        let requests = exchanges(Frontend::V2Grpc, work);
        let begin = Instant::now();
        // It listens after its models are loaded.
        while let Err(problem) = load::check(&target, Frontend::V2Grpc.wire(), &requests[0]) {
            if begin.elapsed() > READY_WITHIN {
                let log = process.log_end();
                return Err(format!("Triton does not answer: {problem}; its log ends with:{log}"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(Triton { target, _process: process })
    }
}

/// Triton takes no port 0 for two protocols at one address.
fn free_ports() -> Result<[SocketAddr; 2]> {
    let bound = || TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"));
    let address = |listener: &TcpListener| {
        listener.local_addr().map_err(|e| format!("no address of a port: {e}"))
    };
    let both = [bound()?, bound()?];
    Ok([address(&both[0])?, address(&both[1])?])
}
