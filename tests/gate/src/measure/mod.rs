//! The three ways of counting, each with a server of its own.

pub mod counts; // allocations and copies, by the server itself
pub mod instructions; // by callgrind
pub mod syscalls; // by strace

use crate::requests::MODEL;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trtserver_tests::{Server, dist};

/// Before anything is counted: buffers have their size, pools are filled.
const WARM_UP: u32 = 20;

/// The echo, without batches.
fn server() -> Server {
    let tensor = |name| format!("[ {{ name: \"{name}\" data_type: TYPE_FP32 dims: [ -1 ] }} ]");
    let (input, output) = (tensor("INPUT0"), tensor("OUTPUT0"));
    let config = format!("name: \"{MODEL}\"\nbackend: \"probe\"\ninput {input}\noutput {output}\n");
    Server::new().model(MODEL, config)
}

/// Whether this program can be started.
pub fn is_there(program: &str) -> bool {
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
