//! `cargo xtask bench`: builds the release server and runs the benchmarks; see docs/performance.md.

use crate::build;
use crate::command::{Result, run, say};
use crate::paths::Paths;
use crate::{perf_analyzer, runtimes};
use std::process::Command;

/// `arguments` are passed to `trtserver-bench`; `no_build` uses the last build.
pub fn bench(paths: &Paths, no_build: bool, arguments: &[String]) -> Result<()> {
    let plugins = paths.target.join("bench/backends");
    // `--help` needs the program only.
    let help_only = arguments.iter().any(|a| a == "--help" || a == "-h");
    if !no_build {
        runtimes::fetch(paths)?;
        if !help_only {
            perf_analyzer::fetch(paths);
        }
        build::build_with(paths, false, &["trtserver-benches", "trtserver-probe"])?;
        // The test backend is not part of an install.
        let library = "libtrtserver_probe.so";
        build::put(&paths.target.join("release").join(library), &plugins.join(library))?;
    }
    say("bench: measuring (keep the machine idle meanwhile)");
    let mut command = Command::new(paths.target.join("release/trtserver-bench"));
    command.arg("--dist").arg(paths.dist(false)).arg("--probe").arg(plugins);
    command.arg("--models").arg(paths.root.join("examples/models"));
    command.arg("--perf-analyzer").arg(perf_analyzer::folder(paths)).args(arguments);
    run(&mut command, "run `cargo xtask bench` without --no-build to build what is missing")
}
