//! `cargo xtask test`: all checks and tests, as steps. CI runs the same command.

use crate::build;
use crate::command::{Result, cargo, run, say};
use crate::deny;
use crate::gate;
use crate::paths::Paths;
use crate::python::{self, Environment};
use crate::runtimes;
use crate::tidy;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

enum Outcome {
    Passed,
    Skipped(&'static str),
}

type Step = fn(&Paths) -> Result<Outcome>;

/// In order of cost: fast checks first.
const STEPS: &[(&str, Step)] = &[
    ("fmt", fmt),
    ("tidy", |paths| tidy::tidy(paths).map(|()| Outcome::Passed)),
    ("clippy", clippy),
    ("deny", |paths| deny::deny(paths).map(|()| Outcome::Passed)),
    ("runtimes", |paths| runtimes::fetch(paths).map(|()| Outcome::Passed)),
    ("python", |paths| environments(paths).map(|_| Outcome::Passed)),
    ("build", |paths| build::build(paths, true).map(|_| Outcome::Passed)),
    ("rust", rust),
    ("gate", gate),
];

/// The names that `--only` takes.
pub fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|(name, _)| *name).collect()
}

/// Runs the steps in `only` (all if empty) and prints a summary.
pub fn test(paths: &Paths, only: &[String]) -> Result<()> {
    let mut report = String::new();
    let mut failed = Vec::new();
    let selected = |name: &str| only.is_empty() || only.iter().any(|o| o == name);
    let steps: Vec<_> = STEPS.iter().filter(|(name, _)| selected(name)).collect();
    for (number, (name, step)) in steps.iter().enumerate() {
        say(format!("test: step {} of {}: {name}", number + 1, steps.len()));
        let start = Instant::now();
        let outcome = step(paths);
        let seconds = start.elapsed().as_secs_f64();
        let (result, remark) = match outcome {
            Ok(Outcome::Passed) => ("ok", ""),
            Ok(Outcome::Skipped(reason)) => ("skipped", reason),
            Err(e) => {
                say(format!("test: {name}: {e}"));
                failed.push(*name);
                ("FAILED", "")
            }
        };
        report += &format!("  {name:<10}{result:<8}{seconds:>7.1} s  {remark}\n");
    }
    eprint!("\n{report}");
    if failed.is_empty() {
        eprintln!("all steps passed");
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

fn in_root(paths: &Paths) -> Command {
    let mut command = cargo();
    command.current_dir(&paths.root);
    command
}

fn fmt(paths: &Paths) -> Result<Outcome> {
    let hint = "run `cargo fmt` (if it is missing: rustup component add rustfmt)";
    run(in_root(paths).args(["fmt", "--all", "--check"]), hint).map(|()| Outcome::Passed)
}

fn clippy(paths: &Paths) -> Result<Outcome> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    run(in_root(paths).args(arguments), "if clippy is missing: rustup component add clippy")
        .map(|()| Outcome::Passed)
}

/// Python interpreters for the tests, each with the environment variable that names it.
fn environments(paths: &Paths) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut made = Vec::new();
    let all: [(&str, &Environment); 2] =
        [("TRTSERVER_PY_V1", &python::V1), ("TRTSERVER_PY_V2", &python::V2)];
    for (variable, environment) in all {
        if environment.supported_here() {
            made.push((variable, python::environment(paths, environment)?));
        } else {
            say(format!(
                "python {}: its client has no package for {}, tests that need it are skipped",
                environment.name,
                std::env::consts::ARCH
            ));
        }
    }
    Ok(made)
}

/// Tests of the whole workspace. Tests that start a server find it with `TRTSERVER_DIST`.
fn rust(paths: &Paths) -> Result<Outcome> {
    runtimes::fetch(paths)?;
    let environments = environments(paths)?;
    let dist = build::build(paths, true)?;
    run(
        in_root(paths)
            .args(["test", "--workspace", "--no-fail-fast"])
            .env("TRTSERVER_DIST", dist)
            .envs(environments),
        "",
    )
    .map(|()| Outcome::Passed)
}

/// The gate, after the tests: costs matter only for correct responses.
fn gate(paths: &Paths) -> Result<Outcome> {
    let missing = gate::gate(paths, &[])?;
    Ok(if missing.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Skipped("in part: strace or valgrind is missing, see above")
    })
}
