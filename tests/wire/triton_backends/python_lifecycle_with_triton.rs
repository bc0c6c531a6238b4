//! Models of Triton's Python backend that are loaded, changed, unloaded, or that fail in
//! `initialize` and `finalize`.

use serde_json::json;
use std::fs;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::isolated::processes;
use trtserver_tests::triton::Triton;
use trtserver_tests::{Response, Running, Server};

fn server() -> Server {
    explicit().triton_start_line().backend_dir(Triton::backends())
}

/// The process of a Python model answers.
#[track_caller]
fn infer(server: &Running, model: &str, value: i32) -> Response {
    let body =
        json!({"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1], "data": [value]}]});
    server.post(&format!("/v2/models/{model}/infer"), &[], body.to_string())
}

/// The first element of the first output.
#[track_caller]
fn number(response: &Response) -> i64 {
    let json = response.json();
    json["outputs"][0]["data"][0].as_i64().unwrap_or_else(|| panic!("{json}"))
}

#[test]
fn failing_models_do_not_affect_others() {
    let server = server().copy_model("tests/triton/models/breaks").file("breaks/1/when", "");
    let server = server.copy_model("tests/triton/models/metrics").start();
    assert_ok(server.load("metrics"));
    let says = server.load("breaks").error_text();
    for part in ["breaks", "no paper in initialize"] {
        assert!(says.contains(part), "no {part:?} in {says:?}");
    }
    // The error does not wait for the end of the process.
    server.poll_until("its process ends", |server| processes(server, "breaks:").is_empty());

    // It is loaded without that file; its `finalize` raises, which the log says.
    fs::remove_file(server.models().path().join("breaks/1/when")).unwrap_or_else(|e| panic!("{e}"));
    assert_ok(server.load("breaks"));
    assert!(number(&infer(&server, "breaks", 0)) > 0);
    assert_ok(server.unload("breaks"));
    server.wait_for_log("no glue in finalize");
    server.poll_until("its process ends", |server| processes(server, "breaks:").is_empty());
    assert_eq!(server.get("/v2/models/metrics/ready").status, 200);
    assert!(server.stop().success());
}

const NUMBER: &str = "import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        tensor = pb_utils.Tensor('OUTPUT0', np.array([NUMBER], np.int32))
        return [pb_utils.InferenceResponse([tensor]) for _ in requests]
";

/// The cache that Python writes beside the script is not a change of the model.
#[test]
fn change_of_the_instance_count_initialises_only_the_new_instances() {
    let script = NUMBER.replace("NUMBER", "7").replace(
        "class TritonPythonModel:\n",
        "class TritonPythonModel:\n    def initialize(self, args):\n        print('an instance began', flush=True)\n\n",
    );
    let config = |count: u32| {
        format!(
            "backend: \"python\"\nmax_batch_size: 0\n\
             input [ {{ name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] }} ]\n\
             output [ {{ name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 1 ] }} ]\n\
             instance_group [ {{ kind: KIND_CPU count: {count} }} ]\n"
        )
    };
    let server = server().model("m", config(1)).file("m/1/model.py", &script).start();
    assert_ok(server.load("m"));
    let cache = server.models().path().join("m/1/__pycache__");
    assert!(cache.is_dir(), "this Python writes no cache: {}", cache.display());
    let begun = || server.log().matches("an instance began").count();
    server.poll_until("the first instance began", |_| begun() >= 1);
    for (count, expected) in [(3, 3), (2, 3), (3, 4)] {
        server.models().file("m/config.pbtxt", config(count));
        assert_ok(server.load("m"));
        assert_eq!(number(&infer(&server, "m", 0)), 7);
        server.poll_until("the new instances began", |_| begun() >= expected);
        assert_eq!(begun(), expected, "count {count}");
    }
    assert!(!server.log().contains("re-loading: m:1"), "{}", server.log());
    assert!(server.stop().success());
}

#[test]
fn reload_takes_the_new_file() {
    let config = "backend: \"python\"\nmax_batch_size: 0\n\
        input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n\
        output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n\
        instance_group [ { kind: KIND_CPU count: 1 } ]\n";
    for isolation in ["process", "none"] {
        let flag = format!("--backend-config=python,isolation={isolation}");
        let server = server().model("m", config).flag(flag).start();
        for value in [1, 2] {
            server.models().file("m/1/model.py", NUMBER.replace("NUMBER", &value.to_string()));
            assert_ok(server.load("m"));
            assert_eq!(number(&infer(&server, "m", 0)), value, "{isolation}");
        }
        // One that cannot be loaded leaves the model as it is.
        server.models().file("m/1/model.py", "def broken(");
        let says = server.load("m").error_text();
        assert!(says.contains("SyntaxError"), "{isolation}: {says}");
        assert_eq!(number(&infer(&server, "m", 0)), 2, "{isolation}");
        assert_ok(server.unload("m"));
        assert_eq!(infer(&server, "m", 0).status, 404, "{isolation}");
        assert!(server.stop().success(), "{isolation}");
    }
}

const COMMANDS: &str = "import sys
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            command = pb_utils.get_input_tensor_by_name(request, 'INPUT0').as_numpy()
            if command[0] == 1:
                for _ in range(4096):
                    sys.stderr.write('flood ' * 2048 + '\\n')
            if command[0] == 2:
                time.sleep(1000)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor('OUTPUT0', command)]))
        return responses
";

#[test]
fn processes_that_hang_or_flood_standard_error() {
    let config = "backend: \"python\"\nmax_batch_size: 0\n\
        input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n\
        output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n\
        instance_group [ { kind: KIND_CPU count: 1 } ]\n\
        parameters { key: \"isolation_deadline_seconds\" value { string_value: \"3\" } }\n";
    let server = server().model("m", config).file("m/1/model.py", COMMANDS);
    let server = server.copy_model("tests/triton/models/metrics").start();
    assert_ok(server.load("m"));
    assert_ok(server.load("metrics"));
    assert_eq!(number(&infer(&server, "m", 1)), 1);
    let hangs = infer(&server, "m", 2);
    let says = hangs.error_text();
    assert!(hangs.status >= 500 && says.contains("'m'") && says.contains('3'), "{says}");
    assert_eq!(server.get("/v2/models/metrics/ready").status, 200);
    server.poll_until("it is served again", |s| s.get("/v2/models/m/ready").status == 200);
    assert_eq!(number(&infer(&server, "m", 5)), 5);
    assert!(server.stop().success());
}
