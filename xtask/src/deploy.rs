//! `cargo xtask deploy`: checks the files of `deploy/` and executes their start lines; with
//! `--proxies`, runs haproxy and nginx in front of three servers.

use crate::apt;
use crate::command::{Result, run};
use crate::paths::Paths;
use crate::python;
use std::path::Path;
use std::process::Command;

/// The proxies' programs and Debian packages.
const PROXIES: [(&str, &str); 2] =
    [("/usr/sbin/haproxy", "haproxy"), ("/usr/sbin/nginx", "nginx-light")];

/// Runs the check with the server of an install.
pub fn check(paths: &Paths, dist: &Path) -> Result<()> {
    let interpreter = python::environment(paths, &python::DEPLOY)?;
    let mut command = Command::new(interpreter);
    command.arg(paths.root.join("deploy/check.py")).arg("--run").arg(dist);
    run(&mut command, "a file of deploy/ is wrong: see above")
}

/// Restarts three servers behind each proxy, under load.
pub fn try_proxies(paths: &Paths, dist: &Path) -> Result<()> {
    let missing: Vec<&str> = PROXIES
        .iter()
        .filter(|(program, _)| !Path::new(program).exists())
        .map(|(_, package)| *package)
        .collect();
    if !missing.is_empty() && !apt::install(&missing) {
        return Err(format!("{} not found: {}", missing.join(", "), apt::hint(&missing)));
    }
    let mut command = Command::new(python::environment(paths, &python::V2)?);
    command.arg(paths.root.join("deploy/try_proxies.py")).arg("--dist").arg(dist);
    run(&mut command, "a proxy lost requests: see above")
}
