//! The ways of counting, each with a server of its own.

pub mod counts; // allocations and copies, by the server itself
pub mod idle; // bytes of idle connections, by the server itself
pub mod instructions; // by callgrind
pub mod syscalls; // by strace

use crate::requests::MODEL;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trtserver_tests::{Server, dist, parameters};

/// Requests before counting starts, after which buffers have grown and pools are filled.
const WARM_UP: u32 = 20;

/// Execution time of the model. The network thread sleeps when the response is ready, as with real
/// models; with a model that responds at once this would vary, and with it the number of system
/// calls.
const DELAY_MS: u32 = 2;

/// A server with the echo model, without batching, whose execution takes `delay_ms`.
fn server(delay_ms: u32) -> Server {
    let tensor = |name| format!("[ {{ name: \"{name}\" data_type: TYPE_FP32 dims: [ -1 ] }} ]");
    let (input, output) = (tensor("INPUT0"), tensor("OUTPUT0"));
    let delay = delay_ms.to_string();
    let parameters = if delay_ms > 0 { parameters(&[("delay_ms", &delay)]) } else { String::new() };
    let config = format!(
        "name: \"{MODEL}\"\nbackend: \"probe\"\ninput {input}\noutput {output}\n{parameters}"
    );
    Server::new().model(MODEL, config).flag("--allow-client-shm=true")
}

/// True if this program can be started.
pub fn is_alive(program: &str) -> bool {
    let silent = || Stdio::null();
    let started = Command::new(program).arg("--version").stdout(silent()).stderr(silent()).status();
    started.is_ok_and(|status| status.success())
}

/// A file for the output of a tool, next to the install. It is kept for inspection.
fn file(name: &str) -> PathBuf {
    let folder = dist().join("found");
    std::fs::create_dir_all(&folder)
        .unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
    folder.join(name)
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}
