//! The three ways of counting, each with a server of its own.

pub mod counts; // allocations and copies, by the server itself
pub mod instructions; // by callgrind
pub mod syscalls; // by strace

use crate::requests::MODEL;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trtserver_tests::{Server, dist, parameters};

/// Before anything is counted: buffers have their size, pools are filled.
const WARM_UP: u32 = 20;

/// Of a model that takes its time, as real ones do: the server's network thread has gone to sleep when the answer is there.
/// With one that answers at once, who sleeps when is chance, and with it a system call or two.
const DELAY_MS: u32 = 2;

/// The echo, without batches; its execution takes so many milliseconds.
fn server(delay_ms: u32) -> Server {
    let tensor = |name| format!("[ {{ name: \"{name}\" data_type: TYPE_FP32 dims: [ -1 ] }} ]");
    let (input, output) = (tensor("INPUT0"), tensor("OUTPUT0"));
    let delay = delay_ms.to_string();
    let parameters = if delay_ms > 0 { parameters(&[("delay_ms", &delay)]) } else { String::new() };
    let config = format!(
        "name: \"{MODEL}\"\nbackend: \"probe\"\ninput {input}\noutput {output}\n{parameters}"
    );
    Server::new().model(MODEL, config)
}

/// Whether this program can be started.
pub fn is_alive(program: &str) -> bool {
    let silent = || Stdio::null();
    let started = Command::new(program).arg("--version").stdout(silent()).stderr(silent()).status();
    started.is_ok_and(|status| status.success())
}

/// A file beside the install for what a tool writes; it stays, for whoever wants to know more.
fn file(name: &str) -> PathBuf {
    let folder = dist().join("found");
    std::fs::create_dir_all(&folder)
        .unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
    folder.join(name)
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}
