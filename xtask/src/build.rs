//! `cargo xtask build`: the host, the plugins, the client and the headers, laid out as an install that can be moved.
//!
//!     target/dist/bin/trtserver  bin/trtserver-classify
//!                 backends/<name>/libtrtserver_<name>.so
//!                 lib/            framework libraries, filled by `runtimes`
//!                 include/  share/  LICENSE    for authors of backends (`sdk.rs`)
//!                 profile         `release` or `debug`

use crate::command::{Result, cargo, run, say};
use crate::paths::Paths;
use crate::sdk;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

struct Plugin {
    package: &'static str,
    /// Name of the built library, between `lib` and `.so`.
    library: &'static str,
    /// Backend name, and name of its directory.
    backend: &'static str,
    /// Used by tests only; not in the release install.
    test_only: bool,
}

const PLUGINS: &[Plugin] = &[
    Plugin {
        package: "trtserver-plugin-caffe2",
        library: "trtserver_caffe2",
        backend: "caffe2",
        test_only: false,
    },
    Plugin {
        package: "trtserver-plugin-custom",
        library: "trtserver_custom",
        backend: "custom",
        test_only: false,
    },
    Plugin {
        package: "trtserver-plugin-onnx",
        library: "trtserver_onnxruntime",
        backend: "onnxruntime",
        test_only: false,
    },
    Plugin {
        package: "trtserver-plugin-tensorflow",
        library: "trtserver_tensorflow",
        backend: "tensorflow",
        test_only: false,
    },
    Plugin {
        package: "trtserver-plugin-tensorrt",
        library: "trtserver_tensorrt",
        backend: "tensorrt",
        test_only: false,
    },
    Plugin {
        package: "trtserver-probe",
        library: "trtserver_probe",
        backend: "probe",
        test_only: true,
    },
];

const PROGRAMS: &[(&str, &str)] =
    &[("trtserver", "trtserver"), ("trtserver-classify", "trtserver-classify")];

/// Builds and installs; returns the directory of the install. The debug install includes the test backends.
pub fn build(paths: &Paths, debug: bool) -> Result<PathBuf> {
    build_with(paths, debug, &[])
}

/// Like [`build`], with additional packages. One cargo command builds all: cargo unifies features of shared dependencies
/// per command, so a second command could recompile the server.
pub fn build_with(paths: &Paths, debug: bool, beside: &[&str]) -> Result<PathBuf> {
    let plugins = || PLUGINS.iter().filter(|plugin| debug || !plugin.test_only);
    let mut command = cargo();
    command.current_dir(&paths.root).arg("build");
    if debug {
        // Same packages as the test step, so that nothing is compiled twice.
        command.arg("--workspace");
        say("build: debug build of the workspace (a few minutes the first time)");
    } else {
        command.arg("--release");
        let install = PROGRAMS.iter().map(|p| p.0).chain(plugins().map(|p| p.package));
        for package in install.chain(beside.iter().copied()) {
            command.args(["--package", package]);
        }
        say(
            "build: release build of the server, backends and client (a few minutes the first time)",
        );
    }
    run(&mut command, "")?;

    let profile = if debug { "debug" } else { "release" };
    let built = paths.target.join(profile);
    let dist = paths.dist(debug);
    for (_, program) in PROGRAMS {
        put(&built.join(program), &dist.join("bin").join(program))?;
    }
    for plugin in plugins() {
        let file = format!("lib{}.so", plugin.library);
        put(&built.join(&file), &dist.join("backends").join(plugin.backend).join(&file))?;
    }
    sdk::install(paths, &dist)?;
    if debug {
        // As `gpu_test.rs` installs it for the release: not among the backends that every test server finds.
        let file = "libtrtserver_ptx.so";
        put(&built.join(file), &dist.join("gpu-test/backends/ptx").join(file))?;
        let fake = dist.join("gpu-test/fake-onnxruntime/libonnxruntime.so.1");
        put(&built.join("libfake_onnxruntime.so"), &fake)?;
        share_lib(paths, &dist)?;
    }
    fs::write(dist.join("profile"), format!("{profile}\n"))
        .map_err(|e| format!("cannot write to {}: {e}", dist.display()))?;
    say(format!("build: installed in {}", paths.short(&dist)));
    Ok(dist)
}

/// Replaces the file atomically; a server that runs from the old file keeps it.
pub fn put(from: &Path, to: &Path) -> Result<()> {
    let wrap = |e| format!("cannot copy {} to {}: {e}", from.display(), to.display());
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(wrap)?;
    }
    let new = to.with_extension("new");
    fs::copy(from, &new).map_err(wrap)?;
    fs::rename(&new, to).map_err(wrap)
}

/// Links the `lib` directory of an install to that of the release install: the libraries are large.
pub fn share_lib(paths: &Paths, dist: &Path) -> Result<()> {
    let link = dist.join("lib");
    let wrap = |e| format!("cannot link {}: {e}", link.display());
    fs::create_dir_all(paths.lib()).map_err(wrap)?;
    if link.symlink_metadata().is_err() {
        symlink("../dist/lib", &link).map_err(wrap)?;
    }
    Ok(())
}
