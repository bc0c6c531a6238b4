//! `cargo xtask build`: the host, the plugins, the client and the headers, laid out as an install
//! that can be moved.
//!
//!     target/dist/bin/trtserver  bin/trtserver-classify  bin/trtserver-perf  bin/perf_client
//!                 bin/            and the sample programs (`client_programs.rs`)
//!                 backends/<name>/libtrtserver_<name>.so
//!                 plugins/triton/libtritonserver.so  plugin.toml  fetch/python.toml
//!                 lib/            framework libraries, filled by `runtimes`; the client library (`client_library.rs`)
//!                 include/  share/  LICENSE    for authors of backends (`sdk.rs`)
//!                 profile         `release` or `debug`

use crate::client_library;
use crate::client_programs;
use crate::command::{Result, cargo, run, say};
use crate::paths::Paths;
use crate::sdk;
use crate::wheel;
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
        package: "trtserver-plugin-trees",
        library: "trtserver_fil",
        backend: "fil",
        test_only: false,
    },
    Plugin {
        package: "trtserver-plugin-onnx",
        library: "trtserver_onnxruntime",
        backend: "onnxruntime",
        test_only: false,
    },
    Plugin {
        package: "trtserver-plugin-openvino",
        library: "trtserver_openvino",
        backend: "openvino",
        test_only: false,
    },
    Plugin {
        package: "trtserver-plugin-pytorch",
        library: "trtserver_pytorch",
        backend: "pytorch",
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

/// The adapter for Triton's backends: package, file, and directory in the install.
const ADAPTER: (&str, &str, &str) =
    ("trtserver-plugin-triton", "libtritonserver.so", "plugins/triton");

const PROGRAMS: &[(&str, &str)] = &[
    ("trtserver", "trtserver"),
    ("trtserver-classify", "trtserver-classify"),
    ("trtserver-perf", "trtserver-perf"),
];

/// Other names of programs: the name selects flags and output.
const ALIASES: &[(&str, &str)] = &[("perf_client", "trtserver-perf")];

/// What `cargo xtask demo` builds and installs: the server without object stores and TLS, its client, and
/// the plugins whose framework is there. Without default features, since object stores and TLS are
/// a third of the crates.
pub fn build_demo(paths: &Paths, backends: &[&str]) -> Result<PathBuf> {
    const PROFILE: &str = "demo";
    let plugins: Vec<_> = PLUGINS.iter().filter(|p| backends.contains(&p.backend)).collect();
    let programs = ["trtserver", "trtserver-classify"];
    let mut command = cargo();
    command.current_dir(&paths.root).args(["build", "--profile", PROFILE, "--no-default-features"]);
    for package in programs.into_iter().chain(plugins.iter().map(|plugin| plugin.package)) {
        command.args(["--package", package]);
    }
    say(format!(
        "build: server, client and backends {} for the demo (a few minutes the first time)",
        backends.join(", ")
    ));
    run(&mut command, "")?;
    let built = paths.target.join(PROFILE);
    let dist = paths.demo_dist();
    for program in programs {
        put(&built.join(program), &dist.join("bin").join(program))?;
    }
    put_plugins(&built, &dist, plugins.into_iter())?;
    share_lib(paths, &dist)?;
    say(format!("build: installed in {}", paths.short(&dist)));
    Ok(dist)
}

fn put_plugins<'a>(
    built: &Path,
    dist: &Path,
    plugins: impl Iterator<Item = &'a Plugin>,
) -> Result<()> {
    for plugin in plugins {
        let file = format!("lib{}.so", plugin.library);
        put(&built.join(&file), &dist.join("backends").join(plugin.backend).join(&file))?;
    }
    Ok(())
}

/// Builds and installs; returns the directory of the install. The debug install includes the test
/// backends.
pub fn build(paths: &Paths, debug: bool) -> Result<PathBuf> {
    build_with(paths, debug, &[])
}

/// The debug install: the last one with `no_build`, else a new one.
pub fn debug_dist(paths: &Paths, no_build: bool) -> Result<PathBuf> {
    match no_build {
        true => Ok(paths.dist(true)),
        false => build(paths, true),
    }
}

/// What the dev-dependencies of the workspace enable.
const DEBUG_FEATURES: &str = "trtserver-server/testing,trtserver-model-files/testing";

/// Like [`build`], with additional packages. One cargo command builds all: cargo unifies features
/// of shared dependencies per command, so a second command could recompile the server.
pub fn build_with(paths: &Paths, debug: bool, beside: &[&str]) -> Result<PathBuf> {
    let mut command = if debug { paths.cargo() } else { cargo() };
    command.current_dir(&paths.root).arg("build");
    if debug {
        // Same packages and features as the test step, so that nothing is compiled twice.
        command.args(["--workspace", "--features", DEBUG_FEATURES]);
        say("build: debug build of the workspace (a few minutes the first time)");
    } else {
        command.arg("--release");
        for package in release_packages().collect::<Vec<&str>>().iter().chain(beside) {
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
    install_build(paths, &built, &dist, debug)?;
    if debug {
        share_lib(paths, &dist)?;
    }
    client_programs::install(paths, &dist)?;
    if debug {
        // As `gpu_test.rs` installs it for the release: not among the backends that every test
        // server finds.
        let file = "libtrtserver_ptx.so";
        put(&built.join(file), &dist.join("gpu-test/backends/ptx").join(file))?;
        let fake = dist.join("gpu-test/fake-onnxruntime/libonnxruntime.so.1");
        put(&built.join("libfake_onnxruntime.so"), &fake)?;
    }
    fs::write(dist.join("profile"), format!("{profile}\n"))
        .map_err(|e| format!("cannot write to {}: {e}", dist.display()))?;
    say(format!("build: installed in {}", paths.short(&dist)));
    Ok(dist)
}

/// The packages of an install.
pub fn release_packages() -> impl Iterator<Item = &'static str> {
    let plugins = PLUGINS.iter().filter(|plugin| !plugin.test_only).map(|plugin| plugin.package);
    let programs = PROGRAMS.iter().map(|program| program.0);
    programs.chain(plugins).chain([client_library::PACKAGE, ADAPTER.0])
}

/// Copies what cargo has built in `built`, and the files that go with it, into an install.
pub fn install_build(paths: &Paths, built: &Path, dist: &Path, debug: bool) -> Result<()> {
    for (_, program) in PROGRAMS {
        put(&built.join(program), &dist.join("bin").join(program))?;
    }
    for (alias, program) in ALIASES {
        link(program, &dist.join("bin").join(alias))?;
    }
    put_plugins(built, dist, PLUGINS.iter().filter(|plugin| debug || !plugin.test_only))?;
    let (_, file, dir) = ADAPTER;
    put(&built.join(file), &dist.join(dir).join(file))?;
    for manifest in ["plugin.toml", "fetch/python.toml"] {
        put(
            &paths.root.join("plugins/triton-shim").join(manifest),
            &dist.join(dir).join(manifest),
        )?;
    }
    sdk::install(paths, dist)?;
    wheel::install(paths, dist, &built.join("libtrtserver_client.so"))?;
    client_library::install(paths, built, dist)
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

/// Makes or replaces a symbolic link.
fn link(to: &str, link: &Path) -> Result<()> {
    let wrap = |e| format!("cannot link {}: {e}", link.display());
    if link.symlink_metadata().is_ok() {
        fs::remove_file(link).map_err(wrap)?;
    }
    symlink(to, link).map_err(wrap)
}

/// Fills the `lib` directory of an install with links to the framework libraries of the release
/// install: they are large.
pub fn share_lib(paths: &Paths, dist: &Path) -> Result<()> {
    let shared = paths.lib();
    let lib = dist.join("lib");
    let wrap =
        |e| format!("cannot link the libraries of {} in {}: {e}", shared.display(), lib.display());
    fs::create_dir_all(&shared).map_err(wrap)?;
    // Installs were made with a link to the whole directory.
    if lib.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
        fs::remove_file(&lib).map_err(wrap)?;
    }
    fs::create_dir_all(&lib).map_err(wrap)?;
    for entry in fs::read_dir(&lib).map_err(wrap)?.flatten() {
        if entry.path().is_symlink() && !entry.path().exists() {
            fs::remove_file(entry.path()).map_err(wrap)?;
        }
    }
    for entry in fs::read_dir(&shared).map_err(wrap)?.flatten() {
        let link = lib.join(entry.file_name());
        let own = client_library::OWN.iter().any(|own| entry.file_name() == *own);
        if !own && link.symlink_metadata().is_err() {
            symlink(Path::new("../../dist/lib").join(entry.file_name()), &link).map_err(wrap)?;
        }
    }
    Ok(())
}
