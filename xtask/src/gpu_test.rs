//! `cargo xtask gpu-test`: the checks that need a GPU. Puts their program and the test backend into
//! `target/dist`, which can be carried to a machine without network and compiler and run there:
//! `bin/trtserver-gpu-test`.

use crate::build;
use crate::command::{Result, run, say};
use crate::paths::Paths;
use std::process::Command;

const PROGRAM: &str = "trtserver-gpu-test";
/// Package and library of the test backend `ptx`.
const BACKEND: (&str, &str) = ("trtserver-ptx", "libtrtserver_ptx.so");

/// Builds unless `no_build`, and runs unless `only_build`; `arguments` are passed to the program.
pub fn gpu_test(
    paths: &Paths,
    no_build: bool,
    only_build: bool,
    arguments: &[String],
) -> Result<()> {
    let dist = paths.dist(false);
    let program = dist.join("bin").join(PROGRAM);
    if !no_build {
        let (package, library) = BACKEND;
        build::build_with(paths, false, &[PROGRAM, package])?;
        let built = paths.target.join("release");
        build::put(&built.join(PROGRAM), &program)?;
        build::put(&built.join(library), &dist.join("gpu-test/backends/ptx").join(library))?;
    }
    if only_build {
        say(format!("gpu-test: run {} on the machine with a GPU", paths.short(&program)));
        return Ok(());
    }
    run(Command::new(&program).args(arguments), "a check failed: see above")
}
