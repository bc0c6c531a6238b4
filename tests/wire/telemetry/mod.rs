//! No telemetry: no process of the server asks for a name, opens a connection, or writes outside
//! its own places. The system calls of the server and its children are read from a trace of strace.
//! Home and temporary folder are new, and stay empty.
//!
//! The environment asks for the telemetry of ONNX Runtime, which is off all the same.
#![allow(clippy::unwrap_used, reason = "what these tests cannot do is a failure")]

mod trace;
mod with_tensorflow;

use serde_json::json;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use trace::Trace;
use trtserver_tests::isolated::processes;
use trtserver_tests::{Process, Running, Server, TIMEOUT, backends, dist, folder, root};

/// Switches the telemetry of ONNX Runtime off, unless its value is `0`.
const VARIABLE: &str = "ORT_DISABLE_TELEMETRY";

/// Empty folders for programs that look for a place of the user, and a trace.
struct Place {
    folder: TempDir,
    trace: Option<Trace>,
}

impl Place {
    fn new() -> Self {
        let folder = folder();
        for name in ["home", "temporary", "trace"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let trace = Trace::new(&folder.path().join("trace"));
        Self { folder, trace }
    }

    /// Without the variables that would send files elsewhere.
    fn environment(&self) -> [(&'static str, OsString); 5] {
        let path = |name: &str| self.folder.path().join(name).into_os_string();
        let cache = self.folder.path().join("home/.cache").into_os_string();
        [
            ("HOME", path("home")),
            ("TMPDIR", path("temporary")),
            ("XDG_CACHE_HOME", cache.clone()),
            ("XDG_DATA_HOME", cache),
            (VARIABLE, "0".into()),
        ]
    }

    /// The words before the program's own.
    fn tracer(&self) -> Vec<OsString> {
        self.trace.as_ref().map(Trace::command).unwrap_or_default()
    }

    fn server(&self) -> Server {
        let program = self.tracer().into_iter().chain([dist().join("bin/trtserver").into()]);
        let server = Server::new().program(program);
        self.environment().into_iter().fold(server, |server, (name, value)| server.env(name, value))
    }

    /// Runs a command of the server's program, which must succeed.
    fn run<W: Into<OsString>>(&self, words: impl IntoIterator<Item = W>) -> String {
        let program = dist().join("bin/trtserver").into_os_string();
        let line = self.tracer().into_iter().chain([program]);
        let line: Vec<OsString> = line.chain(words.into_iter().map(Into::into)).collect();
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).envs(self.environment());
        let ended = Process::spawn(command).wait(TIMEOUT);
        assert!([0, 3].contains(&ended.code()), "{ended:?}");
        ended.stdout
    }

    /// After the end of the process, which has opened this library.
    #[track_caller]
    fn expect_nothing(self, repository: &Path, library: &str) {
        for name in ["home", "temporary"] {
            let entries = fs::read_dir(self.folder.path().join(name)).unwrap();
            let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            assert!(names.is_empty(), "in the {name} folder: {names:?}");
        }
        if let Some(trace) = self.trace {
            // The folder that `plugin check` makes for a model, and removes.
            let scratch = self.folder.path().join("temporary/.tmp");
            assert_eq!(trace.findings(&[repository.to_owned(), scratch], library), [""; 0]);
        }
    }
}

/// The model is a copy of `identity_fp32` of one of the formats.
#[track_caller]
fn returns_its_input(server: &Running, model: &str) {
    let input = json!({ "name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2] });
    let body = json!({ "inputs": [input] }).to_string();
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(response.json()["outputs"][0]["data"], json!([1.0, 2.0]), "{}", response.text());
}

/// Serves a model of `tests/models`, in the server's process and in one of its own.
fn serves_without_telemetry(model: &str, backend: &str, library: &str, flags: &[String]) {
    for isolated in [false, true] {
        let place = Place::new();
        let mut server = flags.iter().fold(place.server(), |server, flag| server.flag(flag));
        if isolated {
            server = server.flag(format!("--backend-config={backend},isolation=process"));
        }
        let server = server.copy_model(format!("tests/models/{model}")).start();
        let name = model.rsplit('/').next().unwrap_or(model);
        assert_eq!(processes(&server, name).len(), usize::from(isolated), "{model}");
        returns_its_input(&server, name);
        let repository = server.models().path().to_owned();
        assert!(server.stop().success());
        place.expect_nothing(&repository, library);
    }
}

#[test]
fn onnx_models() {
    serves_without_telemetry("identity_fp32", "onnxruntime", "/libonnxruntime.so", &[]);
}

#[test]
fn caffe2_models() {
    serves_without_telemetry("netdef/identity_fp32", "caffe2", "/libonnxruntime.so", &[]);
}

#[test]
fn commands_that_open_backends_and_models() {
    let model = root().join("tests/models/identity_fp32");
    let plugin = backends().join("onnxruntime/libtrtserver_onnxruntime.so");
    let words = |words: &[&dyn AsRef<std::ffi::OsStr>]| -> Vec<OsString> {
        words.iter().map(|word| word.as_ref().to_owned()).collect()
    };
    let repository = folder();
    let copy = repository.path().join("identity_fp32/1");
    fs::create_dir_all(&copy).unwrap();
    for file in ["config.pbtxt", "1/model.onnx"] {
        fs::copy(model.join(file), repository.path().join("identity_fp32").join(file)).unwrap();
    }
    let dir = format!("--backend-dir={}", backends().display());
    for (line, library) in [
        (words(&[&"plugin", &"check", &plugin, &"--model", &model]), "/libonnxruntime.so"),
        (words(&[&"plugin", &"list", &dir]), "/libtrtserver_onnxruntime.so"),
        (words(&[&"check", &repository.path(), &"--open", &dir]), "/libonnxruntime.so"),
    ] {
        let place = Place::new();
        let said = place.run(line.clone());
        assert!(said.contains("onnxruntime") || line[0] == "check", "{line:?}: {said}");
        place.expect_nothing(repository.path(), library);
    }
}

/// Tests and benches open the library in their own process too.
#[test]
fn cargo_switches_it_off_for_what_it_starts() {
    assert_eq!(std::env::var(VARIABLE).as_deref(), Ok("1"), "see .cargo/config.toml");
}
