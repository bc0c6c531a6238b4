//! `cargo xtask test`: all checks and tests, as steps. CI runs the same command.

use crate::apt;
use crate::azurite;
use crate::build;
use crate::command::{Result, cargo, joined, output, run, say};
use crate::demonstrate;
use crate::deny;
use crate::deploy;
use crate::docs;
use crate::failures;
use crate::gate;
use crate::paths::Paths;
use crate::perf_analyzer;
use crate::python::{self, Environment};
use crate::runtimes::{self, openvino, tensorflow, tensorrt, trees, triton};
use crate::tidy;
use crate::tools;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

/// What `cargo xtask test` runs.
pub struct Options {
    /// Names of steps; all if empty.
    pub only: Vec<String>,
    /// Names from [`LEAVE_OUT`].
    pub without: Vec<String>,
}

/// A framework whose libraries are large.
struct Framework {
    /// For `--without`.
    name: &'static str,
    title: &'static str,
    fetch: fn(&Paths) -> Result<()>,
    /// Part of the path of each test that needs the libraries, by which `--without` finds them.
    /// Where they are missing without that flag, these tests fail.
    tests: &'static str,
}

const FRAMEWORKS: [Framework; 5] = [
    Framework {
        name: "openvino",
        title: "OpenVINO",
        fetch: openvino::fetch,
        tests: "with_openvino",
    },
    Framework {
        name: "tensorflow",
        title: "TensorFlow",
        fetch: tensorflow::fetch,
        tests: "with_tensorflow",
    },
    Framework {
        name: "tensorrt",
        title: "TensorRT",
        fetch: tensorrt::fetch,
        tests: "with_tensorrt_lean",
    },
    Framework {
        name: "trees",
        title: "LightGBM and XGBoost",
        fetch: trees::fetch,
        tests: "with_trees",
    },
    Framework { name: "triton", title: "Triton", fetch: triton::fetch, tests: "with_triton" },
];

/// The names that `--without` takes.
pub const LEAVE_OUT: [&str; 5] = [
    FRAMEWORKS[0].name,
    FRAMEWORKS[1].name,
    FRAMEWORKS[2].name,
    FRAMEWORKS[3].name,
    FRAMEWORKS[4].name,
];

impl Options {
    fn left_out(&self) -> impl Iterator<Item = &'static Framework> {
        FRAMEWORKS.iter().filter(|framework| self.leaves_out(framework))
    }

    fn leaves_out(&self, framework: &Framework) -> bool {
        self.without.iter().any(|name| name == framework.name)
    }
}

enum Outcome {
    Passed,
    /// Passed without what `--without` names.
    LeftOut(String),
    Skipped(&'static str),
}

type Step = fn(&Paths, &Options) -> Result<Outcome>;

/// In order of cost: fast checks first.
const STEPS: &[(&str, Step)] = &[
    ("tools", |_, _| tools()),
    ("fmt", |paths, _| fmt(paths)),
    ("tidy", |paths, _| tidy::tidy(paths).map(|()| Outcome::Passed)),
    ("clippy", |paths, _| clippy(paths)),
    ("deny", |paths, _| deny::deny(paths).map(|()| Outcome::Passed)),
    ("runtimes", runtimes),
    ("python", |paths, _| environments(paths).map(|_| Outcome::Passed)),
    ("build", |paths, _| build::build(paths, true).map(|_| Outcome::Passed)),
    ("docs", |paths, _| docs::check(paths).map(|()| Outcome::Passed)),
    ("deploy", deploy),
    ("rust", rust),
    ("gate", |paths, _| gate(paths)),
];

/// Steps that begin with a build.
const COMPILES: [&str; 3] = ["clippy", "build", "rust"];

/// The names that `--only` takes.
pub fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|(name, _)| *name).collect()
}

/// Runs the selected steps and prints a summary, which ends with what was left out.
pub fn test(paths: &Paths, options: &Options) -> Result<()> {
    let mut report = String::new();
    let (mut failed, mut errors, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    let selected = |name: &str| options.only.is_empty() || options.only.iter().any(|o| o == name);
    let paths = &Paths { lints: selected("clippy") && selected("rust"), ..paths.clone() };
    let steps: Vec<_> = STEPS.iter().filter(|(name, _)| selected(name)).collect();
    let mut early_build = None;
    thread::scope(|scope| {
        let mut early_tools = None;
        for (number, (name, step)) in steps.iter().enumerate() {
            say(format!("test: step {} of {}: {name}", number + 1, steps.len()));
            let start = Instant::now();
            if selected("gate") && COMPILES.contains(name) && early_build.is_none() {
                early_build = gate::EarlyBuild::start(paths);
            }
            match *name {
                // Downloaded while the first crates are compiled.
                "clippy" => early_tools = Some(scope.spawn(|| install_ahead(paths, &selected))),
                // The steps install them again, so that they report what failed.
                "python" | "docs" | "deploy" => {
                    let _ = early_tools.take().map(ScopedJoinHandle::join);
                }
                "gate" => early_build.take().into_iter().for_each(gate::EarlyBuild::wait),
                _ => {}
            }
            let outcome = step(paths, options);
            let seconds = start.elapsed().as_secs_f64();
            let (result, remark) = match outcome {
                Ok(Outcome::Passed) => ("ok", ""),
                Ok(Outcome::LeftOut(what)) => {
                    left_out.push(what);
                    ("ok", "in part, see below")
                }
                Ok(Outcome::Skipped(reason)) => ("skipped", reason),
                Err(e) => {
                    say(format!("test: {name}: {e}"));
                    errors.push(format!("{name}: {e}"));
                    failed.push(*name);
                    ("FAILED", "")
                }
            };
            report += &format!("  {name:<10}{result:<8}{seconds:>7.1} s  {remark}\n");
        }
    });
    // Again, since steps that follow print much.
    for error in errors {
        eprintln!("\n{error}");
    }
    eprint!("\n{report}");
    let passed = failed.is_empty();
    if passed {
        eprintln!("all steps passed");
    }
    for what in left_out {
        eprintln!("left out: {what}");
    }
    if passed { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// First, so that a missing program is reported before the builds.
fn tools() -> Result<Outcome> {
    let missing = tools::install()?;
    Ok(match missing.is_empty() {
        true => Outcome::Passed,
        false => Outcome::LeftOut(format!(
            "what needs {} ({})",
            missing.join(" and "),
            apt::hint(&missing)
        )),
    })
}

fn fmt(paths: &Paths) -> Result<Outcome> {
    let hint = "run `cargo fmt` (if it is missing: rustup component add rustfmt)";
    run(cargo().current_dir(&paths.root).args(["fmt", "--all", "--check"]), hint)
        .map(|()| Outcome::Passed)
}

/// Clippy alone, or with the tests: then it compiles what they run (see [`Paths::cargo`]). What the
/// crates are without their optional features, the gate compiles.
fn clippy(paths: &Paths) -> Result<Outcome> {
    let all = ["--workspace", "--all-targets", "--quiet"];
    let mut command = paths.cargo();
    if paths.lints {
        command.args(["test", "--no-run"]).args(all);
    } else {
        command.arg("clippy").args(all).args(["--", "-D", "warnings"]);
    }
    run(&mut command, "if clippy is missing: rustup component add clippy").map(|()| Outcome::Passed)
}

/// Python environments and programs of the selected steps.
fn install_ahead(paths: &Paths, selected: &(impl Fn(&str) -> bool + Sync)) {
    thread::scope(|scope| {
        if selected("python") {
            scope.spawn(|| environments(paths).map(drop));
        }
        if selected("docs") {
            scope.spawn(|| docs::install_tools(paths));
        }
        if selected("deploy") && python::DEPLOY.supported_here() {
            scope.spawn(|| deploy::install_tools(paths).map(drop));
            scope.spawn(|| python::environment(paths, &python::ENVOY).map(drop));
        }
    });
}

/// What the tests need beside their runtimes, each with the environment variable that names it. All
/// are made at the same time: each waits for the package index for the most part.
fn environments(paths: &Paths) -> Result<Vec<(&'static str, PathBuf)>> {
    let all: [(&str, &Environment); 5] = [
        ("TRTSERVER_PY_V1", &python::V1),
        ("TRTSERVER_PY_V2", &python::V2),
        ("TRTSERVER_PY_KSERVE", &python::KSERVE),
        ("TRTSERVER_PY_S3", &python::S3),
        ("TRTSERVER_PY_BUILD", &python::BUILD),
    ];
    let (supported, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, environment)| environment.supported_here());
    for (_, environment) in others {
        say(format!(
            "python {}: its client has no package for {}, tests that need it are skipped",
            environment.name,
            std::env::consts::ARCH
        ));
    }
    thread::scope(|scope| {
        let made: Vec<_> = supported
            .into_iter()
            .map(|(variable, environment)| {
                (variable, scope.spawn(move || python::environment(paths, environment)))
            })
            .chain([("TRTSERVER_AZURITE", scope.spawn(|| azurite::install(paths)))])
            .collect();
        let analyzer = scope.spawn(|| perf_analyzer::install(paths));
        let made: Result<Vec<_>> =
            made.into_iter().map(|(variable, made)| Ok((variable, joined(made)?))).collect();
        joined(analyzer)?;
        made
    })
}

/// How many tests of a program run at the same time. They wait for servers, timeouts and clients
/// half of the time.
fn test_threads() -> String {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    std::env::var("RUST_TEST_THREADS").unwrap_or_else(|_| cores.max(4).to_string())
}

/// ONNX Runtime, and the frameworks that are not left out.
fn runtimes(paths: &Paths, options: &Options) -> Result<Outcome> {
    runtimes::fetch(paths)?;
    for framework in FRAMEWORKS.iter().filter(|framework| !options.leaves_out(framework)) {
        (framework.fetch)(paths).map_err(|e| {
            let name = framework.name;
            format!("{e}\n  `cargo xtask test --without {name}` leaves out the tests that need it")
        })?;
    }
    let left_out = options.left_out().map(|framework| {
        format!("the download of {} (--without {})", framework.title, framework.name)
    });
    Ok(outcome(left_out.collect()))
}

/// `left_out` says what.
fn outcome(left_out: Vec<String>) -> Outcome {
    if left_out.is_empty() { Outcome::Passed } else { Outcome::LeftOut(left_out.join(", ")) }
}

/// The files of `deploy/`, with the debug install, and several servers behind Envoy.
fn deploy(paths: &Paths, _: &Options) -> Result<Outcome> {
    if !python::DEPLOY.supported_here() {
        return Ok(Outcome::Skipped("kubectl has no package for this machine"));
    }
    runtimes::fetch(paths)?;
    let dist = build::build(paths, true)?;
    deploy::check(paths, &dist)?;
    demonstrate::test(paths, &dist)?;
    Ok(Outcome::Passed)
}

/// Tests of the whole workspace. Tests that start a server find it with `TRTSERVER_DIST`.
fn rust(paths: &Paths, options: &Options) -> Result<Outcome> {
    runtimes(paths, options)?;
    let environments = environments(paths)?;
    tools::install()?;
    let dist = build::build(paths, true)?;
    let mut command = paths.cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    let skip = options.left_out().flat_map(|framework| ["--skip", framework.tests]);
    command.arg("--").args(skip);
    // Tests make backends panic on purpose; backtraces of them would hide the failures.
    command.env("RUST_BACKTRACE", "0").env("RUST_TEST_THREADS", test_threads());
    failures::run(command.env("TRTSERVER_DIST", dist).envs(environments))?;
    let left_out = options.left_out().map(|framework| {
        let count = tests_named(paths, framework.tests)?;
        let Framework { title, name, .. } = framework;
        Ok(format!("{count} tests that need {title} (--without {name})"))
    });
    Ok(outcome(left_out.collect::<Result<_>>()?))
}

/// How many tests have this part in their path.
fn tests_named(paths: &Paths, part: &str) -> Result<usize> {
    let mut command = paths.cargo();
    command.args(["test", "--workspace", "--quiet", "--tests", part, "--", "--list"]);
    let list = output(&mut command, "")?;
    Ok(list.lines().filter(|line| line.ends_with(": test")).count())
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
