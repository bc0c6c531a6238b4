//! Another v2 server to compare with: address, models, and its process if it runs on this machine.

use crate::Result;
use crate::clients::Workload;
use crate::cores::{Cores, Moved};
use crate::load::Target;
use crate::requests::{Frontend, Work};
use crate::status;
use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};

const MODELS: [&str; 2] = ["identity", "addsub_fp32"];

pub struct Peer {
    target: Target,
    name: String,
    missing: Vec<&'static str>,
    /// Why it could not be pinned.
    not_pinned: Option<String>,
    _moved: Option<Moved>,
}

impl Peer {
    /// `address` is HOST:PORT[,GRPCPORT].
    pub fn find(address: &str, pid: Option<u32>, cores: &Cores) -> Result<Self> {
        let (http, grpc) = parse(address)?;
        status::body(http, "/v2/health/ready").map_err(|e| format!("--vs {address}: {e}"))?;
        let about = status::get(http, "/v2").map_err(|e| format!("--vs {address}: {e}"))?;
        let word = |name: &str| about[name].as_str().unwrap_or("?").to_owned();
        let serves =
            |model: &&str| status::body(http, &format!("/v2/models/{model}/ready")).is_ok();
        let missing: Vec<&str> = MODELS.into_iter().filter(|model| !serves(model)).collect();
        if missing.len() == MODELS.len() {
            return Err(format!(
                "--vs {address}: it serves neither of the models {}; --write-models DIR writes them, \
                 of which `identity` may need another `backend:` there",
                MODELS.join(" and ")
            ));
        }
        let pid = pid.or_else(|| http.ip().is_loopback().then(|| listener(http.port())).flatten());
        let moved = pid.map(|pid| cores.move_server(pid)).transpose();
        let (moved, not_pinned) = match moved {
            Ok(Some(moved)) => (Some(moved), None),
            Ok(None) => {
                (None, Some("its process is not known: no CPU time, nothing pinned".into()))
            }
            Err(problem) => (None, Some(problem)),
        };
        let name = format!("{} {} at {http}", word("name"), word("version"));
        let target = Target { http: Some(http), grpc, pid };
        Ok(Peer { target, name, missing, not_pinned, _moved: moved })
    }

    pub fn describe(&self) -> String {
        match (&self.not_pinned, self.target.pid) {
            (None, Some(pid)) => format!("{}, process {pid} pinned like ours", self.name),
            (problem, _) => format!("{} ({})", self.name, problem.as_deref().unwrap_or_default()),
        }
    }

    /// Target of this case; none if the server cannot serve it.
    pub fn target_for(&self, workload: Workload) -> Option<Target> {
        let speaks = match workload.frontend {
            Frontend::V1Http | Frontend::V1Grpc => false,
            Frontend::V2Http | Frontend::V2Json | Frontend::V2JsonIn | Frontend::V2JsonOut => true,
            Frontend::V2Grpc | Frontend::V2Stream => self.target.grpc.is_some(),
        };
        (speaks && !self.missing.contains(&Work::model(workload.work))).then_some(self.target)
    }

    /// What is missing in the table, and why.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for model in &self.missing {
            remarks.push(format!("{} does not serve '{model}'", self.name));
        }
        if self.target.grpc.is_none() {
            remarks.push(format!(
                "{}: no gRPC rows; --vs HOST:PORT,GRPCPORT names its port",
                self.name
            ));
        }
        remarks
    }
}

fn parse(text: &str) -> Result<(SocketAddr, Option<SocketAddr>)> {
    let (http, grpc) = match text.split_once(',') {
        Some((http, port)) => (http, Some(port)),
        None => (text, None),
    };
    let invalid =
        |e: &dyn std::fmt::Display| format!("--vs {text}: {e}; expected HOST:PORT[,GRPCPORT]");
    let http = http.to_socket_addrs().map_err(|e| invalid(&e))?.next();
    let http = http.ok_or_else(|| invalid(&"no such host"))?;
    let grpc = match grpc {
        Some(port) => Some(SocketAddr::new(http.ip(), port.parse().map_err(|e| invalid(&e))?)),
        None => None,
    };
    Ok((http, grpc))
}

/// The process that listens on a local port, if permitted to find out.
fn listener(port: u16) -> Option<u32> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .find_map(|file| listening(&fs::read_to_string(file).ok()?, port))?;
    let socket = format!("socket:[{inode}]");
    let pids = fs::read_dir("/proc").ok()?.flatten();
    pids.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok()).find(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd"));
        files.is_ok_and(|files| {
            files.flatten().any(|file| {
                fs::read_link(file.path()).is_ok_and(|link| link.to_string_lossy() == socket)
            })
        })
    })
}

/// The inode of the listening socket in /proc/net/tcp or tcp6.
fn listening(table: &str, port: u16) -> Option<u64> {
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is = fields.get(3) == Some(&"0A") && u16::from_str_radix(local, 16) == Ok(port);
        is.then(|| fields.get(9)?.parse().ok())?
    })
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
