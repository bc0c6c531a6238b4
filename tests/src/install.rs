//! Paths of the install under test: from the environment, or the defaults of `cargo xtask test`.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// The checkout.
pub fn root() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests)
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The install under test: `bin/trtserver`, `backends/`, `lib/`.
pub fn dist() -> PathBuf {
    let configured = env::var_os("TRTSERVER_DIST").map(|dir| root().join(dir));
    let dist = configured.clone().unwrap_or_else(|| target().join("dist-debug"));
    let server = dist.join("bin/trtserver");
    assert!(
        server.is_file(),
        "no server to test at {}\n  `cargo xtask test --only build` makes target/dist-debug, \
         `cargo xtask runtimes` its ONNX Runtime, `cargo xtask test --only rust` everything; \
         TRTSERVER_DIST=DIR names another install",
        server.display()
    );
    if configured.is_none() {
        warn_if_stale(&server);
    }
    dist
}

/// A debug install is a copy: after a plain `cargo build` it is stale.
fn warn_if_stale(installed: &Path) {
    static ONCE: Once = Once::new();
    let time = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    let built = target().join("debug/trtserver");
    ONCE.call_once(|| {
        if time(&built) > time(installed) {
            say(&format!(
                "{} is older than {}: `cargo xtask test --only build` updates it",
                installed.display(),
                built.display()
            ));
        }
    });
}

/// The folder of the installed plugins.
pub fn backends() -> PathBuf {
    let dir = dist().join("backends");
    let probe = dir.join("probe/libtrtserver_probe.so");
    assert!(
        probe.is_file(),
        "the install has no test plugin at {}: only a debug install has one \
         (`cargo xtask test --only build`)",
        probe.display()
    );
    dir
}

/// TensorFlow's library in this release, which `cargo xtask runtimes --tensorflow` installs. Tests
/// that need it have `with_tensorflow` in their path, by which
/// `cargo xtask test --without tensorflow` leaves them out.
pub fn tensorflow(version: &str) -> PathBuf {
    release("TensorFlow", "tensorflow", version, "libtensorflow_cc.so.2")
}

/// The folder of TensorRT's lean and dispatch runtimes in this release, which
/// `cargo xtask runtimes --tensorrt` installs. Tests that need it have `with_tensorrt_lean` in
/// their path, by which `cargo xtask test --without tensorrt` leaves them out.
pub fn tensorrt(version: &str) -> PathBuf {
    release("TensorRT", "tensorrt", version, "")
}

/// `file` of a release of a framework, or its folder.
fn release(title: &str, name: &str, version: &str, file: &str) -> PathBuf {
    let path = dist().join(format!("lib/{name}-{version}")).join(file);
    assert!(
        path.exists(),
        "no {title} {version} at {}\n  `cargo xtask runtimes --{name}` installs it, \
         `cargo xtask test --without {name}` leaves out the tests that need it",
        path.display()
    );
    path
}

/// Python with the client of this generation; none where that client has no build.
pub fn python(generation: &str) -> Option<PathBuf> {
    let variable = format!("TRTSERVER_PY_{}", generation.to_uppercase());
    if let Some(program) = env::var_os(&variable) {
        return Some(root().join(program));
    }
    let program = if generation == "v1" { "run" } else { "bin/python" };
    let program = target().join("python").join(generation).join(program);
    if program.is_file() {
        return Some(program);
    }
    if generation == "v1" && !cfg!(target_arch = "x86_64") {
        return None;
    }
    panic!(
        "no Python environment '{generation}' at {}\n  `cargo xtask python` makes it, or {variable}=PROGRAM \
         names one",
        program.display()
    );
}

/// Python keeps what it compiles for `command` below `target`, not beside the sources. Packages are
/// installed without compiled modules, since most of them are not used.
pub fn keep_bytecode(command: &mut Command) -> &mut Command {
    command.env_remove("PYTHONDONTWRITEBYTECODE");
    command.env("PYTHONPYCACHEPREFIX", target().join("python/bytecode"))
}

/// A build tool of `target/python/build`, such as cmake.
pub fn build_tool(name: &str) -> PathBuf {
    match python("build") {
        Some(program) => program.with_file_name(name),
        None => PathBuf::from(name),
    }
}

/// Azurite's blob service.
pub fn azurite() -> PathBuf {
    if let Some(program) = env::var_os("TRTSERVER_AZURITE") {
        return root().join(program);
    }
    let program = target().join("azurite/run");
    assert!(
        program.is_file(),
        "no Azurite at {}\n  `cargo xtask python` installs it, or TRTSERVER_AZURITE=PROGRAM names it",
        program.display()
    );
    program
}

/// The folder of perf_analyzer and its libraries; none where it has no build.
pub fn perf_analyzer() -> Option<PathBuf> {
    if cfg!(not(target_arch = "x86_64")) {
        return None;
    }
    let folder = target().join("perf_analyzer");
    let complete = ["perf_analyzer", "libb64.so.0d"].iter().all(|f| folder.join(f).is_file());
    assert!(
        complete,
        "no perf_analyzer with its libraries in {}\n  `cargo xtask python` installs it",
        folder.display()
    );
    Some(folder)
}

/// `/opt/tritonserver` as `cargo xtask runtimes --triton` links it: Triton's server and its Python
/// backend. Tests that need it have `with_triton` in their path, by which
/// `cargo xtask test --without triton` leaves them out.
pub fn triton() -> PathBuf {
    let folder = target().join("triton/opt/tritonserver");
    assert!(
        folder.join("backends/python/libtriton_python.so").is_file(),
        "no Triton at {}\n  `cargo xtask runtimes --triton` installs it, \
         `cargo xtask test --without triton` leaves out the tests that need it",
        folder.display()
    );
    folder
}

/// Prints to the terminal, past the harness, which captures the output of passing tests.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "tests: {text}");
}
