//! `cargo xtask gate`: counts allocations, copies, system calls and instructions per request, and
//! compares them with the ceilings in `tests/gate/src/ceilings.rs`.

use crate::apt;
use crate::build;
use crate::command::{Result, cannot_start, cargo, output, run, say};
use crate::paths::Paths;
use crate::tools;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Builds and runs the gate; `arguments` are passed to it. Returns the tools that are missing and
/// could not be installed: their figures are not checked.
///
/// # Errors
/// A figure exceeds its ceiling, or with `CI=true` a tool is missing.
pub fn gate(paths: &Paths, arguments: &[String]) -> Result<Vec<&'static str>> {
    let missing = tools::install_measuring()?;
    let install = install(paths)?;
    // The client of the figures: what it costs itself is not counted. With the features that the
    // whole workspace gives its dependencies, as the tests have compiled them.
    let mut client = paths.cargo();
    client.args(["build", "--quiet", "--workspace", "--bin", "trtserver-gate"]);
    run(&mut client, "")?;
    say("gate: counting (a few minutes)");
    let mut command = Command::new(paths.target.join("debug/trtserver-gate"));
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

/// The gate's build, begun with the first step that compiles: each leaves a core idle for a while,
/// and the build takes nothing but idle time.
pub struct EarlyBuild(Child);

impl EarlyBuild {
    /// `None` without the program `chrt` of util-linux: the gate then builds in its own step.
    pub fn start(paths: &Paths) -> Option<Self> {
        // First, at the usual priority: other builds wait for the lock of a download. Errors are
        // those of the next build.
        let _ = fetch_crates(paths);
        let cargo = build_command(paths);
        let mut command = Command::new("chrt");
        command.args(["--idle", "0"]).arg(cargo.get_program()).args(cargo.get_args());
        for (name, value) in cargo.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(&paths.root);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok().map(Self)
    }

    /// Waits for its end. The gate's step builds again, so that it reports what failed.
    pub fn wait(mut self) {
        let _ = self.0.wait();
    }
}

/// Downloads what the workspace needs on this machine.
fn fetch_crates(paths: &Paths) -> Result<()> {
    let about = output(cargo().arg("-vV"), "")?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    run(cargo().current_dir(&paths.root).args(["fetch", "--quiet", "--target", host]), "")
}

/// Crates whose code no request of the figures executes: not optimised, which is quicker.
const NOT_IN_REQUESTS: &[&str] = &[
    "abi_stable",
    "aho-corasick",
    "axum",
    "clap",
    "clap_builder",
    "cudarc",
    "goblin",
    "nvml-wrapper",
    "png",
    "prometheus",
    "prost-reflect",
    "regex",
    "regex-automata",
    "regex-syntax",
    "toml",
    "toml_parser",
    "tonic-reflection",
    "tracing-subscriber",
    "winnow",
    "trtserver-api-description",
    "trtserver-classify",
    "trtserver-client",
    "trtserver-config",
    "trtserver-device",
    "trtserver-isolation",
    "trtserver-library-file",
    "trtserver-load-report",
    "trtserver-metrics",
    "trtserver-model-config",
    "trtserver-model-files",
    "trtserver-model-store",
    "trtserver-plugin-testkit",
    "trtserver-status-page",
    "trtserver-telemetry",
    "trtserver-tool",
];

/// The server of the demo: without object stores, the exporter of spans, TLS and AEGIS, which these
/// requests do not use. They are more than half of the build.
fn build_command(paths: &Paths) -> Command {
    let mut command = cargo();
    command.current_dir(&paths.root).args(["build", "--profile", "profiling"]);
    // callgrind names functions; it needs no lines.
    command.args(["--config", "profile.profiling.debug=false"]);
    for package in NOT_IN_REQUESTS {
        command.args(["--config", &format!("profile.profiling.package.{package}.opt-level=0")]);
    }
    for package in ["trtserver", "trtserver-probe", "trtserver-counted"] {
        command.args(["--package", package]);
    }
    // Not for the figures: the demo's client, so that its warnings are found, too.
    command.args(["--package", "trtserver-classify", "--no-default-features"]);
    command
}

/// Fails if the compiler warns about crates that lack their optional features. Clippy sees the
/// workspace with all of them. Cargo repeats the warnings of what it has compiled before.
fn deny_warnings(paths: &Paths) -> Result<()> {
    let mut command = build_command(paths);
    let output = command.arg("--quiet").output();
    let output = output.map_err(|e| cannot_start(&command, &e, ""))?;
    if output.status.success() && output.stderr.is_empty() {
        return Ok(());
    }
    let warnings = String::from_utf8_lossy(&output.stderr);
    Err(format!("warnings without the optional features, which the demo leaves out:\n{warnings}"))
}

/// Builds an optimised profile that compiles faster than release (instruction counts of a debug
/// build mean nothing). Installs it in a directory of its own, with the test backend.
fn install(paths: &Paths) -> Result<PathBuf> {
    say("gate: optimised build of the server (a few minutes the first time)");
    run(&mut build_command(paths), "")?;
    deny_warnings(paths)?;
    let (built, install) = (paths.target.join("profiling"), paths.target.join("gate"));
    for program in ["trtserver", "trtserver-counted"] {
        build::put(&built.join(program), &install.join("bin").join(program))?;
    }
    let probe = "libtrtserver_probe.so";
    build::put(&built.join(probe), &install.join("backends/probe").join(probe))?;
    Ok(install)
}
