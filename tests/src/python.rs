//! Runs the scripts of `tests/python` with the official clients.

use crate::install::{keep_bytecode, python, root, say};
use crate::process::Process;
use crate::server::Running;
use crate::triton::Triton;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Limit for a script on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(900);

/// Runs a script with the v1 client of 2020. Skipped with a notice where that client has no build.
#[track_caller]
pub fn python_v1(server: &Running, script: &str, arguments: &[&str]) {
    run("v1", server, script, arguments);
}

/// Runs a script with the current v2 client.
#[track_caller]
pub fn python_v2(server: &Running, script: &str, arguments: &[&str]) {
    run("v2", server, script, arguments);
}

/// Runs a script with the clients of KServe and MLServer.
#[track_caller]
pub fn python_kserve(server: &Running, script: &str, arguments: &[&str]) {
    run("kserve", server, script, arguments);
}

#[track_caller]
fn run(generation: &str, server: &Running, script: &str, arguments: &[&str]) {
    python_output(generation, None, server, script, arguments);
}

/// Runs a script in this environment and returns what it printed. `packages` is a folder whose
/// packages take precedence.
#[track_caller]
pub fn python_output(
    generation: &str,
    packages: Option<&Path>,
    server: &Running,
    script: &str,
    arguments: &[&str],
) -> String {
    let Some(program) = python(generation) else {
        let here = std::env::consts::ARCH;
        say(&format!("SKIPPED {script}: the {generation} client has no build for {here}"));
        return String::new();
    };
    let addresses = [server.http(), server.grpc(), server.metrics_address()];
    finish(start(program, packages, addresses, script, arguments), script, || server.log())
}

/// Runs a script with the current v2 client against Triton itself.
#[track_caller]
pub fn python_v2_with_triton(triton: &Triton, script: &str, arguments: &[&str]) {
    if let Some(program) = python("v2") {
        let process = start(program, None, triton.addresses(), script, arguments);
        finish(process, script, || triton.log());
    }
}

/// `addresses`: HTTP, gRPC, metrics.
#[track_caller]
fn start(
    program: PathBuf,
    packages: Option<&Path>,
    addresses: [&str; 3],
    script: &str,
    arguments: &[&str],
) -> Process {
    let mut command = Command::new(program);
    command.arg(root().join("tests/python").join(script));
    for (kind, address) in ["--http", "--grpc", "--metrics"].into_iter().zip(addresses) {
        command.args([kind, address]);
    }
    command.args(arguments).current_dir(root());
    keep_bytecode(&mut command).env("PYTHONUNBUFFERED", "1");
    if let Some(packages) = packages {
        command.env("PYTHONPATH", packages);
    }
    Process::spawn(command)
}

/// What the script printed.
#[track_caller]
fn finish(process: Process, script: &str, log: impl Fn() -> String) -> String {
    let ended = process.wait(TIMEOUT);
    if !ended.status.success() {
        let log = log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(40)..].join("\n");
        panic!("{script} failed\n{process}\n--- end of the server's log\n{last}\n---");
    }
    ended.stdout
}
