//! Processes of Triton's Python backend that end while others of the same model execute, and
//! backends that are written in Python.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use trtserver_tests::triton::Triton;
use trtserver_tests::{Connection, Repository, Running, Server, folder, http1};

/// Writes the number of its process to the file FOLDER/INSTANCE, and answers when there is a file
/// FOLDER/go.
const WAITS: &str = "import os
import pathlib
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.name = args['model_instance_name']

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        folder = pathlib.Path(pb_utils.get_input_tensor_by_name(request, 'FOLDER').as_numpy()[0].decode())
        (folder / 'new').write_text(str(os.getpid()))
        (folder / 'new').rename(folder / self.name)
        while not (folder / 'go').exists():
            time.sleep(0.005)
        tensor = pb_utils.Tensor('INSTANCE', np.array([self.name], np.object_))
        return pb_utils.InferenceResponse([tensor])
";

const CONFIG: &str = "backend: \"python\"\nmax_batch_size: 0\n\
    input [ { name: \"FOLDER\" data_type: TYPE_STRING dims: [ 1 ] } ]\n\
    output [ { name: \"INSTANCE\" data_type: TYPE_STRING dims: [ 1 ] } ]\n\
    instance_group [ { kind: KIND_CPU count: 2 } ]\n";

fn ask(server: &Running, model: &str, folder: &Path) -> Connection {
    let given = json!({"name": "FOLDER", "datatype": "BYTES", "shape": [1], "data": [folder]});
    let body = json!({"inputs": [given]}).to_string();
    let path = format!("/v2/models/{model}/infer");
    let mut connection = server.connect();
    connection.send(http1::request("POST", &path, &[], body.as_bytes()));
    connection
}

/// The only instance that executes a request of this folder, and its process.
#[track_caller]
fn executing(server: &Running, folder: &Path) -> (String, Pid) {
    let found = || {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.into_iter().find(|name| name.ends_with("_cpu"))
    };
    server.poll_until("an instance executes", |_| found().is_some());
    let name = found().unwrap_or_default();
    let pid = fs::read_to_string(folder.join(&name)).ok().and_then(|text| text.parse().ok());
    (name, pid.and_then(Pid::from_raw).unwrap_or_else(|| panic!("no process")))
}

#[test]
fn killed_process_loses_its_requests_only() {
    let server = Server::new()
        .triton_start_line()
        .backend_dir(Triton::backends())
        .model("pair", CONFIG)
        .file("pair/1/model.py", WAITS)
        .start();
    let folders = [folder(), folder(), folder()];
    let [killed, other, later] = folders.each_ref().map(|folder| folder.path());
    let mut lost = ask(&server, "pair", killed);
    let (_, pid) = executing(&server, killed);
    let mut kept = ask(&server, "pair", other);
    let (name, _) = executing(&server, other);
    kill_process(pid, Signal::KILL).unwrap_or_else(|e| panic!("{e}"));
    let response = lost.response();
    assert!(response.status >= 500, "{}", response.text());

    // This one waits until the model is started again.
    let mut next = ask(&server, "pair", later);
    fs::write(later.join("go"), "").unwrap_or_else(|e| panic!("{e}"));
    fs::write(other.join("go"), "").unwrap_or_else(|e| panic!("{e}"));
    let response = kept.response();
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.json()["outputs"][0]["data"], json!([name]));
    let response = next.response();
    assert_eq!(response.status, 200, "{}", response.text());
    server.wait_for_log_with(&[
        "process",
        "which the backend 'python' started for the model, was killed by signal 9",
    ]);
    assert!(server.stop().success());
}

/// A folder of backends: Triton's Python backend, and `scripted`, which that one runs.
fn scripted() -> tempfile::TempDir {
    let dir = folder();
    let python = Triton::backends().join("python");
    symlink(&python, dir.path().join("python")).unwrap_or_else(|e| panic!("{e}"));
    fs::create_dir(dir.path().join("scripted")).unwrap_or_else(|e| panic!("{e}"));
    fs::write(dir.path().join("scripted/model.py"), SCRIPTED).unwrap_or_else(|e| panic!("{e}"));
    dir
}

/// Completes configurations, and answers with the text of the file in the version's directory.
const SCRIPTED: &str = "import pathlib

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({'name': 'IN', 'data_type': 'TYPE_INT32', 'dims': [1]})
        config.add_output({'name': 'OUT', 'data_type': 'TYPE_STRING', 'dims': [1]})
        config.set_max_batch_size(0)
        return config

    def initialize(self, args):
        folder = pathlib.Path(args['model_repository']) / args['model_version']
        self.text = (folder / 'text').read_text()

    def execute(self, requests):
        tensor = pb_utils.Tensor('OUT', np.array([self.text], np.object_))
        return [pb_utils.InferenceResponse([tensor]) for _ in requests]
";
const REQUEST: &str = r#"{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}"#;

#[test]
fn backends_written_in_python() {
    let backends = scripted();
    let texts = [("one", "first"), ("two", "second")];
    let repository = Repository::new();
    for (name, text) in texts {
        repository.model(name, "backend: \"scripted\"\n");
        repository.file(format!("{name}/1/text"), text);
    }
    let triton = Triton::start(repository.path(), backends.path(), &[]);
    for isolation in ["process", "none"] {
        let mut server = Server::new().triton_start_line().backend_dir(backends.path());
        for (name, text) in texts {
            server =
                server.model(name, "backend: \"scripted\"\n").file(&format!("{name}/1/text"), text);
        }
        let server =
            server.flag(format!("--backend-config=scripted,isolation={isolation}")).start();
        for (name, text) in texts {
            let path = format!("/v2/models/{name}/infer");
            for response in [server.post(&path, &[], REQUEST), triton.post(&path, REQUEST)] {
                assert_eq!(response.status, 200, "{}", response.text());
                assert_eq!(response.json()["outputs"][0]["data"], json!([text]), "{isolation}");
            }
        }
        assert!(server.stop().success(), "{isolation}");
    }
}
