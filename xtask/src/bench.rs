//! `cargo xtask bench`: builds the release server and measures it; see docs/performance.md.

use crate::build;
use crate::command::{Result, run, say};
use crate::paths::Paths;
use crate::{perf_analyzer, runtimes};
use std::process::Command;

/// `arguments` go to `trtserver-bench` as they are; with `no_build` what was built last is measured.
pub fn bench(paths: &Paths, no_build: bool, arguments: &[String]) -> Result<()> {
    let plugins = paths.target.join("bench/backends");
    // Help needs the program alone, and not what it measures.
    let only_asks = arguments.iter().any(|word| word == "--help" || word == "-h");
    if !no_build {
        runtimes::fetch(paths)?;
        if !only_asks {
            perf_analyzer::fetch(paths);
        }
        build::build_with(paths, false, &["trtserver-benches", "trtserver-probe"])?;
        // The plugin that echoes belongs to no install; it lies beside.
        let library = "libtrtserver_probe.so";
        build::put(&paths.target.join("release").join(library), &plugins.join(library))?;
    }
    say("bench: measuring (leave the machine alone meanwhile)");
    let mut command = Command::new(paths.target.join("release/trtserver-bench"));
    command.arg("--dist").arg(paths.dist(false)).arg("--probe").arg(plugins);
    command.arg("--models").arg(paths.root.join("examples/models"));
    command.arg("--perf-analyzer").arg(perf_analyzer::folder(paths)).args(arguments);
    run(&mut command, "`cargo xtask bench` without --no-build builds what is needed")
}
