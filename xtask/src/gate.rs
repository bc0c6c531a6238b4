//! `cargo xtask gate`: what a request costs the server, counted, against the ceilings in `tests/gate/src/ceilings.rs`.

use crate::build;
use crate::command::{Result, cargo, run, say};
use crate::paths::Paths;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What counts for the gate, and the Debian package of the same name.
const TOOLS: [&str; 2] = ["strace", "valgrind"];
const HINT: &str = "install strace and valgrind (Debian and Ubuntu: apt install strace valgrind)";

/// Builds and judges; `arguments` go to the gate as they are. The tools that were not there, and could not be installed,
/// come back: what they count is not judged.
///
/// # Errors
/// A figure above its ceiling, or with `CI=true` a tool that is missing.
pub fn gate(paths: &Paths, arguments: &[String]) -> Result<Vec<&'static str>> {
    let missing = install_missing();
    if !missing.is_empty() && std::env::var("CI").is_ok_and(|ci| ci == "true") {
        return Err(format!("{} cannot be installed here; {HINT}", missing.join(" and ")));
    }
    let install = install(paths)?;
    say("gate: counting");
    let mut command = Command::new(paths.target.join("profiling/trtserver-gate"));
    command.env("TRTSERVER_DIST", install).args(arguments);
    run(
        &mut command,
        "what is too much stands above; the ceilings are in tests/gate/src/ceilings.rs",
    )?;
    for tool in &missing {
        say(format!("gate: no {tool}, so what it counts was NOT judged; {HINT}"));
    }
    Ok(missing)
}

/// Optimised but quickly built: instructions of a debug build say nothing. An install of its own, with the tests' plugin.
fn install(paths: &Paths) -> Result<PathBuf> {
    let mut command = cargo();
    command.current_dir(&paths.root).args(["build", "--profile", "profiling"]);
    for package in ["trtserver", "trtserver-probe", "trtserver-gate"] {
        command.args(["--package", package]);
    }
    say("gate: optimised build of the server (a few minutes the first time)");
    run(&mut command, "")?;
    let (built, install) = (paths.target.join("profiling"), paths.target.join("gate"));
    for program in ["trtserver", "trtserver-counted"] {
        build::put(&built.join(program), &install.join("bin").join(program))?;
    }
    let probe = "libtrtserver_probe.so";
    build::put(&built.join(probe), &install.join("backends/probe").join(probe))?;
    Ok(install)
}

/// Installs what is missing where that takes no more than apt: as root. Gives what is missing still.
fn install_missing() -> Vec<&'static str> {
    let missing: Vec<&str> = TOOLS.into_iter().filter(|tool| !is_there(tool)).collect();
    if missing.is_empty() || quiet("id", &["-u"]).is_none_or(|id| id.trim() != "0") {
        return missing;
    }
    say(format!("gate: apt-get install {}", missing.join(" ")));
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    // A list of packages that is old, or not there at all, is the usual reason for a refusal.
    let install = [&["install", "-y", "--no-install-recommends"], missing.as_slice()].concat();
    if !apt(&install) && apt(&["update"]) {
        apt(&install);
    }
    missing.into_iter().filter(|tool| !is_there(tool)).collect()
}

fn is_there(tool: &str) -> bool {
    quiet(tool, &["--version"]).is_some()
}

/// What it printed, if it ended well.
fn quiet(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
