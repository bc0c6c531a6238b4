//! `cargo xtask gate`: counts allocations, copies, system calls and instructions per request, and
//! compares them with the ceilings in `tests/gate/src/ceilings.rs`.

use crate::apt;
use crate::build;
use crate::command::{Result, cargo, run, say};
use crate::paths::Paths;
use crate::tools;
use std::path::PathBuf;
use std::process::Command;

/// Builds and runs the gate; `arguments` are passed to it. Returns the tools that are missing and
/// could not be installed: their figures are not checked.
///
/// # Errors
/// A figure exceeds its ceiling, or with `CI=true` a tool is missing.
pub fn gate(paths: &Paths, arguments: &[String]) -> Result<Vec<&'static str>> {
    let missing = tools::install_measuring()?;
    let install = install(paths)?;
    say("gate: counting (a few minutes)");
    let mut command = Command::new(paths.target.join("profiling/trtserver-gate"));
    command.env("TRTSERVER_DIST", install).args(arguments);
    run(
        &mut command,
        "figures above their ceiling are listed above; the ceilings are in tests/gate/src/ceilings.rs",
    )?;
    for tool in &missing {
        say(format!(
            "gate: {tool} is missing, its figures were NOT checked: {}",
            apt::hint(&[tool])
        ));
    }
    Ok(missing)
}

/// Builds an optimised profile that compiles faster than release (instruction counts of a debug
/// build mean nothing). Installs it in a directory of its own, with the test backend.
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
