//! `cargo xtask demonstrate`: several servers behind a real Envoy, with what each demonstration
//! promises (`deploy/demonstrations`). Minutes; two have a short form that is one of the tests.

use crate::apt;
use crate::build;
use crate::command::{Result, run};
use crate::paths::Paths;
use crate::python;
use std::path::Path;
use std::process::Command;

/// Programs of some demonstrations: the name of the demonstration, the program, its Debian package.
const PROGRAMS: [(&str, &str, &str); 3] = [
    ("autoscale", "/usr/bin/prometheus", "prometheus"),
    ("sequences", "/usr/bin/openssl", "openssl"),
    ("network", "/usr/sbin/ip", "iproute2"),
];

/// Builds unless `no_build`; `arguments` are names of demonstrations (all if there are none) and
/// `--short`.
pub fn demonstrate(paths: &Paths, no_build: bool, arguments: &[String]) -> Result<()> {
    let all = arguments.iter().all(|argument| argument.starts_with('-'));
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(name, program, _)| {
            (all || arguments.iter().any(|argument| argument == name))
                && !Path::new(program).exists()
        })
        .map(|(_, _, package)| *package)
        .collect();
    if !missing.is_empty() && !apt::install(&missing) {
        return Err(format!("{} not found: {}", missing.join(", "), apt::hint(&missing)));
    }
    let dist = build::debug_dist(paths, no_build)?;
    run_program(paths, &dist, arguments)
}

/// The short forms that are robust on a busy machine: ten seconds.
pub fn test(paths: &Paths, dist: &Path) -> Result<()> {
    run_program(paths, dist, &["--short", "weighted", "kill"].map(str::to_owned))
}

fn run_program(paths: &Paths, dist: &Path, arguments: &[String]) -> Result<()> {
    let mut command = Command::new(python::environment(paths, &python::ENVOY)?);
    command.arg(paths.root.join("deploy/demonstrations/demonstrate.py")).arg("--dist").arg(dist);
    run(command.args(arguments), "a demonstration did not show what it promises: see above")
}
