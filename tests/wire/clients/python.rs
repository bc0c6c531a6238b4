//! The Python wheel against the real server, beside the packages of PyPI that it replaces.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use trtserver_tests::fakes::Fakes;
use trtserver_tests::isolated::isolated;
use trtserver_tests::scheduled::{NEVER, accumulator, flag, sequences};
use trtserver_tests::{
    Process, Running, Server, TIMEOUT, dist, every_model, keep_bytecode, probe, python,
    python_output, root,
};

/// The folder where pip has installed the wheel. It is kept for the next run with the same wheel.
static PACKAGES: LazyLock<PathBuf> = LazyLock::new(|| {
    let made = dist().join("python");
    let mut wheels = std::fs::read_dir(&made).unwrap_or_else(|e| panic!("{}: {e}", made.display()));
    let Some(Ok(wheel)) = wheels.next() else { panic!("no wheel in {}", made.display()) };
    let time = wheel.metadata().and_then(|file| file.modified());
    let expected = format!("{} {time:?}", wheel.path().display());
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wheel");
    let stamp = to.join("made-from.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|made| made == expected) {
        return to;
    }
    let _ = std::fs::remove_dir_all(&to);
    let mut pip = interpreter();
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]);
    pip.arg("--disable-pip-version-check").arg("--target").arg(&to).arg(wheel.path());
    succeeds(pip);
    std::fs::write(&stamp, expected).unwrap_or_else(|e| panic!("{}: {e}", stamp.display()));
    to
});

/// A server that loads models on request.
fn explicit() -> Running {
    let controls = [flag("START", "int32"), flag("READY", "int32")];
    let sums = accumulator("sums", 4, "slot", &sequences(NEVER, "direct { }", &controls));
    let many = probe("many", &[]) + "model_transaction_policy { decoupled: true }\n";
    every_model()
        .model("sums", sums)
        .model("many", many)
        .flag("--model-control-mode=explicit")
        .flag("--load-model=*")
        .flag("--allow-client-shm=true")
        .start()
}

/// A server that loads no models on request.
fn without_load_requests() -> Server {
    let server = every_model().model("isolated", isolated("isolated", &[]));
    server.flag("--allow-client-shm=true")
}

static SERVER: LazyLock<Running> = LazyLock::new(|| without_load_requests().start_shared());

/// The folder with the packages of the wheel.
pub fn packages() -> &'static Path {
    &PACKAGES
}

/// Python of today, with numpy, protobuf, grpcio and mypy.
fn interpreter() -> Command {
    let Some(program) = python("v2") else { panic!("no Python") };
    Command::new(program)
}

#[track_caller]
fn succeeds(command: Command) -> String {
    let process = Process::spawn(command);
    let ended = process.wait(TIMEOUT);
    assert!(ended.status.success(), "{process}");
    ended.stdout
}

fn script(name: &str, server: &Running) {
    python_output("v2", Some(packages()), server, name, &[]);
}

/// A script that prints what every class of the v1 package returns, with the package of 2020 and
/// with the wheel, in the Python environment of that package and in today's.
#[test]
fn v1_scripts_print_what_they_print_with_the_package_of_2020() {
    let server = explicit();
    let run = |environment, packages: Option<&Path>| {
        python_output(environment, packages, &server, "wheel_v1_tour.py", &[])
    };
    let today = run("v2", Some(packages()));
    assert!(today.contains("stream regions: {'OUTPUT0'"), "{today}");
    if python("v1").is_some() {
        let original = run("v1", None);
        assert_same(&original, &run("v1", Some(packages())));
        assert_same(&original, &today);
    }
}

#[track_caller]
fn assert_same(original: &str, ours: &str) {
    for (line, (expected, found)) in original.lines().zip(ours.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", line + 1);
    }
    assert_eq!(original.lines().count(), ours.lines().count());
}

/// The checks that the package of 2020 passes. The server is not shared: they look at its request
/// ids, which count the requests of all clients.
#[test]
fn v1_checks_pass_with_the_wheel() {
    let server = without_load_requests().start();
    for name in ["v1_http.py", "v1_grpc.py", "v1_shared_memory.py"] {
        script(name, &server);
    }
}

#[test]
fn polling_calls_of_the_base_release() {
    script("wheel_v1_base.py", &SERVER);
}

#[test]
fn v2_clients() {
    script("wheel_v2.py", &explicit());
}

#[test]
fn bad_servers_give_errors() {
    script("wheel_bad_servers.py", &SERVER);
}

/// The fake driver counts what is not released.
#[test]
fn cuda_shared_memory() {
    let fakes = Fakes::new();
    let server =
        fakes.server().model("echo", probe("echo", &[])).flag("--allow-client-shm=true").start();
    let fake = fakes.path("libcuda.so.1").display().to_string();
    let script = "wheel_cuda_regions.py";
    python_output("v2", Some(packages()), &server, script, &["--fake", &fake]);
    python_output("v2", Some(packages()), &server, script, &[]);
    assert!(server.stop().success());
    for leak in ["ipc_open", "device_blocks", "double_frees", "bad_handles"] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}

#[test]
fn structures_are_those_of_the_header() {
    let mut python = interpreter();
    python.arg(root().join("tests/python/wheel_layout.py"));
    python.arg(root().join("clients/c/include/trtserver_client.h"));
    succeeds(on_path(python));
}

/// With the sources of the wheel: complete types, and nothing that Python 3.9 does not have.
#[test]
fn types_are_complete() {
    let mut mypy = interpreter();
    mypy.args(["-m", "mypy", "--strict", "-p", "trtserver_client", "-p", "tensorrtserver"]);
    // Kept: the first run reads numpy's types.
    mypy.arg("--cache-dir").arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy"));
    mypy.env("MYPYPATH", root().join("clients/python"));
    succeeds(mypy);
    let parses = "import ast, pathlib, sys\n\
        for file in pathlib.Path(sys.argv[1]).rglob('*.py'):\n\
        \x20   ast.parse(file.read_text(), str(file), feature_version=(3, 9))\n";
    let mut python = interpreter();
    python.args(["-c", parses]).arg(root().join("clients/python"));
    succeeds(python);
}

/// One wheel for every Python: each Python of this machine loads the library and its declarations.
/// Only this module is loaded, because the interpreter may lack numpy.
#[test]
fn every_python_of_the_machine_loads_the_library() {
    let load = "import importlib.util as u, os, sys\n\
        spec = u.spec_from_file_location('library', os.path.join(sys.argv[1], 'trtserver_client/_library.py'))\n\
        library = u.module_from_spec(spec)\n\
        spec.loader.exec_module(library)\n\
        print(sys.version_info[1], len(library.descriptors()) > 9999)\n";
    let mut found = 0;
    for minor in 9..16 {
        let name = format!("python3.{minor}");
        if Command::new(&name).arg("--version").output().is_ok_and(|out| out.status.success()) {
            let mut python = Command::new(name);
            python.args(["-c", load]).arg(packages());
            assert_eq!(succeeds(python), format!("{minor} True\n"));
            found += 1;
        }
    }
    assert!(found > 0, "no python3.9 or newer");
}

fn on_path(mut command: Command) -> Command {
    keep_bytecode(&mut command).env("PYTHONPATH", packages());
    command
}
