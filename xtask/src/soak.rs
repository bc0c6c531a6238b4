//! `cargo xtask soak`: a million requests to the release server, every answer looked at and the memory watched.

use crate::build;
use crate::command::{Result, run, say};
use crate::paths::Paths;
use crate::runtimes;
use std::process::Command;

/// `arguments` go to the soak as they are.
pub fn soak(paths: &Paths, arguments: &[String]) -> Result<()> {
    runtimes::fetch(paths)?;
    let dist = build::build_with(paths, false, &["trtserver-probe", "trtserver-tests"])?;

    // An install of its own: the tests' plugin belongs to no other release install.
    let install = paths.target.join("soak");
    let onnx = "backends/onnxruntime/libtrtserver_onnxruntime.so";
    for file in ["bin/trtserver", onnx] {
        build::put(&dist.join(file), &install.join(file))?;
    }
    let probe = "libtrtserver_probe.so";
    let built = paths.target.join("release");
    build::put(&built.join(probe), &install.join("backends/probe").join(probe))?;
    build::share_lib(paths, &install)?;

    say("soak: a few minutes");
    let mut command = Command::new(built.join("soak"));
    command.env("TRTSERVER_DIST", &install).args(arguments);
    run(&mut command, "an answer was wrong or missing: see above")
}
