//! `cargo xtask soak`: a million requests to the release server; checks every response and the
//! memory use. With `-- --attack`: hostile traffic beside well-behaved clients; `-- --repository`
//! and `-- --reloads`: models that change under load; `-- --sharing`: the rate limiter and turns of
//! clients; `-- --rolling-restart`: three servers behind
//! Envoy.

use crate::build;
use crate::command::{Result, run, say};
use crate::paths::Paths;
use crate::python;
use crate::runtimes;
use std::process::Command;

/// `arguments` are passed to the soak test.
pub fn soak(paths: &Paths, arguments: &[String]) -> Result<()> {
    runtimes::fetch(paths)?;
    let dist = build::build_with(paths, false, &["trtserver-probe", "trtserver-tests"])?;

    // An install of its own, because the release install must not contain the test backend.
    let install = paths.target.join("soak");
    let onnx = "backends/onnxruntime/libtrtserver_onnxruntime.so";
    for file in ["bin/trtserver", onnx] {
        build::put(&dist.join(file), &install.join(file))?;
    }
    let probe = "libtrtserver_probe.so";
    let built = paths.target.join("release");
    build::put(&built.join(probe), &install.join("backends/probe").join(probe))?;
    build::share_lib(paths, &install)?;

    say("soak: running (a few minutes)");
    let mut command = Command::new(built.join("soak"));
    command.env("TRTSERVER_DIST", &install).args(arguments);
    let given = std::env::var_os("TRTSERVER_ENVOY").is_some();
    if arguments.iter().any(|argument| argument == "--rolling-restart") && !given {
        let interpreter = python::environment(paths, &python::ENVOY)?;
        command.env("TRTSERVER_ENVOY", interpreter.with_file_name("envoy"));
    }
    run(&mut command, "a response was wrong or missing, or memory grew: see above")
}
