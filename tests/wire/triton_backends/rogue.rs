//! A Triton backend that misuses its interface on command (tests/triton/rogue.c): the server
//! reports what it did with which function and handle, and keeps serving other models.

use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::isolated::processes;
use trtserver_tests::triton_backends::rogues;
use trtserver_tests::{Connection, Response, Running, Server, http1, parameters};

/// A model of a backend of this name.
fn model(backend: &str, more: &[(&str, &str)]) -> String {
    format!(
        "backend: \"{backend}\"\nmax_batch_size: 0\n\
         input [ {{ name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] }} ]\n\
         output [ {{ name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] }} ]\n\
         instance_group [ {{ kind: KIND_CPU count: 1 }} ]\n{}",
        parameters(more)
    )
}

fn start(server: &Running, model: &str, command: &str) -> Connection {
    let body = format!(
        r#"{{"id":"{command}","inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1],"data":[1]}}]}}"#
    );
    let path = format!("/v2/models/{model}/infer");
    let mut connection = server.connect();
    connection.send(http1::request("POST", &path, &[], body.as_bytes()));
    connection
}

fn infer(server: &Running, model: &str, command: &str) -> Response {
    start(server, model, command).response()
}

/// The model answers a request that asks for nothing wrong.
#[track_caller]
fn works(server: &Running, model: &str, when: &str) {
    let response = infer(server, model, "good");
    assert_eq!(response.status, 200, "{model} {when}: {}", response.text());
    assert_eq!(response.json()["outputs"][0]["data"][0], 5, "{model} {when}");
}

#[track_caller]
fn fails(server: &Running, model: &str, command: &str, parts: &[&str]) {
    let response = infer(server, model, command);
    let says = response.error_text();
    assert!(response.status >= 400, "{model}, {command}: {}", response.text());
    for part in parts {
        assert!(says.contains(part), "{model}, {command}: no {part:?} in {says:?}");
    }
}

/// Misuses that the host refuses with an error, which the backend returns to the client: command,
/// function, and what is wrong.
const REFUSED: [(&str, &str, &str); 13] = [
    ("null", "TRITONBACKEND_RequestInputCount", "the request is null"),
    ("null_result", "TRITONBACKEND_RequestInputCount", "count is null"),
    ("stack", "TRITONBACKEND_RequestInputCount", "is not a handle of a request"),
    ("wild", "TRITONBACKEND_RequestInputCount", "0xdeadbeef1234 is not a handle of a request"),
    ("inside", "TRITONBACKEND_RequestInputCount", "the request 0x"),
    ("other_kind", "TRITONBACKEND_RequestInputCount", "the handle of a model instance, a request"),
    ("null_text", "TRITONBACKEND_RequestInput", "name is null"),
    ("long_message", "TRITONSERVER_MessageNewFromSerializedJson", "18446744073709551615"),
    ("append_long", "TRITONSERVER_InferenceRequestAppendInputData", "18446744073709551615 bytes"),
    ("append_sum", "TRITONSERVER_InferenceRequestAppendInputData", "more than memory has"),
    (
        "append_attributes",
        "TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes",
        "9223372036854775808 bytes",
    ),
    ("use_after_delete", "TRITONSERVER_BufferAttributesByteSize", "was freed before"),
    ("delete_twice", "TRITONSERVER_BufferAttributesDelete", "was freed before"),
];

/// Errors without misuse: command, and parts of the message.
const ERRORS: [(&str, &[&str]); 16] = [
    ("unknown_input", &["NONE"]),
    ("far_input", &["4000000000"]),
    ("no_message", &["the backend gave no message"]),
    ("no_json", &["failed to parse the message"]),
    ("allocate_all", &["1152921504606846976"]),
    ("no_response", &["the backend released the request without a final response"]),
    ("invalid_error", &["TRITONBACKEND_ModelInstanceExecute", "0x1234 is not a handle of a error"]),
    ("too_small", &["OUTPUT0", "2"]),
    ("too_large", &["OUTPUT0", "4096"]),
    ("all_memory", &["OUTPUT0"]),
    ("negative_shape", &["OUTPUT0", "-4"]),
    ("huge_shape", &["OUTPUT0", "1099511627776"]),
    ("null_shape", &["shape"]),
    ("many_dims", &["OUTPUT0", "4000000000 dimensions"]),
    ("no_buffer", &["OUTPUT0"]),
    ("wrong_type", &["OUTPUT0", "unknown type"]),
];

/// Misuses that the client does not see: command, function, and what the log says.
const LOGGED: [(&str, &str, &str); 7] = [
    ("send_twice", "TRITONBACKEND_ResponseSend", "was freed before"),
    (
        "after_final",
        "TRITONBACKEND_ResponseNew",
        "the final response of the request was sent before",
    ),
    ("release_twice", "TRITONBACKEND_RequestRelease", "was freed before"),
    ("use_after_release", "TRITONBACKEND_RequestInputCount", "was freed before"),
    ("long_parameter", "TRITONSERVER_ParameterBytesNew", "9223372036854775808 bytes"),
    ("null_parameter", "TRITONSERVER_ParameterBytesNew", "8 bytes at 0x0"),
    ("wrong_flags", "TRITONBACKEND_RequestRelease", "64"),
];

#[test]
fn misuse_is_refused() {
    let backends = rogues(&["rogue"]);
    for isolation in ["process", "none"] {
        let server = Server::new()
            .triton_start_line()
            .backend_dir(backends.path())
            .model("m", model("rogue", &[("isolation", isolation)]))
            .start();
        for (command, function, wrong) in REFUSED {
            fails(&server, "m", command, &["backend 'rogue'", function, wrong]);
            works(&server, "m", &format!("after {command}"));
            server.wait_for_log_with(&["backend 'rogue'", function, wrong]);
        }
        for (command, parts) in ERRORS {
            fails(&server, "m", command, parts);
            works(&server, "m", &format!("after {command}"));
        }
        // A factory may survive the error of the execution.
        fails(&server, "m", "error_with_survivor", &["out of ink"]);
        works(&server, "m", "after error_with_survivor");
        let taken_back = "the request is the server's";
        fails(&server, "m", "use_survivor", &["TRITONBACKEND_ResponseNewFromFactory", taken_back]);
        for (command, function, wrong) in LOGGED {
            let response = infer(&server, "m", command);
            assert_eq!(response.status, 200, "{command}: {}", response.text());
            works(&server, "m", &format!("after {command}"));
            server.wait_for_log_with(&["backend 'rogue'", function, wrong]);
        }
        for command in ["release_first", "never_release", "error_after_send", "flood"] {
            let response = infer(&server, "m", command);
            assert_eq!(response.status, 200, "{command}: {}", response.text());
            works(&server, "m", &format!("after {command}"));
        }
        // A backend that misuses the interface for every request must not fill the log.
        assert_eq!(infer(&server, "m", "misuse_often").status, 200);
        assert!(server.log().matches("backend 'rogue'").count() <= 1100, "{}", server.log());
        works(&server, "m", "after misuse_often");
        assert!(server.stop().success());
    }
}

#[test]
fn additions_of_instances_to_one_gauge_add_up() {
    let backends = rogues(&["rogue"]);
    for isolation in ["process", "none"] {
        let config = model("rogue", &[("isolation", isolation)]).replace("count: 1", "count: 2");
        let server = Server::new()
            .triton_start_line()
            .backend_dir(backends.path())
            .model("m", &config)
            .model("n", &config)
            .start();
        let models = ["m", "n", "m", "n"];
        let mut pending = models.map(|model| start(&server, model, "add_to_gauge"));
        for connection in &mut pending {
            let response = connection.response();
            assert_eq!(response.status, 200, "{isolation}: {}", response.text());
        }
        assert_eq!(server.metrics("rogue_gauge"), Some(80_000.0), "{isolation}");
        assert!(server.stop().success());
    }
}

/// What ends or blocks the process in execute: command, parts of the error, and the deadline for a
/// response.
const DEADLY: [(&str, &[&str], &str); 5] = [
    ("exit", &["ended with exit code 3"], "60"),
    ("crash", &["SIGSEGV"], "60"),
    ("abort", &["SIGABRT"], "60"),
    ("hang", &["did not respond within 0.5 s and was killed"], "0.5"),
    ("silent", &["did not respond within 0.5 s and was killed"], "0.5"),
];

#[test]
fn ended_processes_are_started_again() {
    let backends = rogues(&["rogue"]);
    let mut server = Server::new().triton_start_line().backend_dir(backends.path());
    for (command, _, deadline) in DEADLY {
        let deadline = [("isolation_deadline_seconds", deadline)];
        server = server.model(command, model("rogue", &deadline));
    }
    let server = server.model("good", model("rogue", &[])).start();
    for (command, parts, _) in DEADLY {
        let mut pending = start(&server, command, command);
        works(&server, "good", &format!("during {command}"));
        let response = pending.response();
        let says = response.error_text();
        assert!(response.status >= 500, "{command}: {says}");
        for part in parts.iter().chain(&[command, "'rogue'"]) {
            assert!(says.contains(part), "{command}: no {part:?} in {says:?}");
        }
        works(&server, "good", &format!("after {command}"));
        let again = |server: &Running| infer(server, command, "good").status == 200;
        server.poll_until(&format!("{command} is started again"), again);
    }
    assert!(server.stop().success());
}

/// Backends whose entry points fail while a model is loaded, and what the error says besides the
/// model's name.
const FAILING_LOADS: [(&str, &[&str]); 14] = [
    ("rogue_error_initialize", &["TRITONBACKEND_Initialize", "out of ink"]),
    ("rogue_error_model", &["TRITONBACKEND_ModelInitialize", "out of ink"]),
    ("rogue_error_instance", &["TRITONBACKEND_ModelInstanceInitialize", "out of ink"]),
    ("rogue_invalid_model", &["TRITONBACKEND_ModelInitialize", "0x1234"]),
    ("rogue_exit_initialize", &["exit code 3", "exit in initialize"]),
    ("rogue_exit_attribute", &["exit code 3", "exit in attribute"]),
    ("rogue_exit_model", &["exit code 3", "exit in model"]),
    ("rogue_exit_instance", &["exit code 3", "exit in instance"]),
    ("rogue_crash_model", &["SIGSEGV"]),
    ("rogue_crash_instance", &["SIGSEGV"]),
    ("rogue_hang_initialize", &["did not respond within 0.5 s"]),
    ("rogue_hang_attribute", &["did not respond within 0.5 s"]),
    ("rogue_hang_model", &["did not respond within 0.5 s"]),
    ("rogue_hang_instance", &["did not respond within 0.5 s"]),
];

/// Backends whose entry points fail while a model is unloaded.
const FAILING_UNLOADS: [&str; 6] = [
    "rogue_error_closeinstance",
    "rogue_error_closemodel",
    "rogue_error_close",
    "rogue_exit_closeinstance",
    "rogue_crash_closeinstance",
    "rogue_hang_closeinstance",
];

#[test]
fn entry_points_that_fail_affect_their_model_only() {
    let loads = FAILING_LOADS.iter().map(|(name, _)| *name);
    let names: Vec<&str> = ["rogue"].into_iter().chain(loads).chain(FAILING_UNLOADS).collect();
    let backends = rogues(&names);
    let mut server = explicit().triton_start_line().backend_dir(backends.path());
    for name in names {
        let limits =
            [("isolation_deadline_seconds", "0.5"), ("isolation_open_deadline_seconds", "0.5")];
        let limits = if name.contains("hang") { &limits[..] } else { &[] };
        server = server.model(name, model(name, limits));
    }
    let server = server.start();
    assert_ok(server.load("rogue"));
    for (name, parts) in FAILING_LOADS {
        let response = server.load(name);
        let says = response.error_text();
        assert!(response.status >= 400, "{name}: {}", response.text());
        for part in parts.iter().chain(&[name]) {
            assert!(says.contains(part), "{name}: no {part:?} in {says:?}");
        }
        works(&server, "rogue", &format!("after {name}"));
    }
    for name in FAILING_UNLOADS {
        assert_ok(server.load(name));
        works(&server, name, "before it is unloaded");
        assert_ok(server.unload(name));
        works(&server, "rogue", &format!("after {name}"));
        server.poll_until(&format!("the process of {name} ends"), |server| {
            processes(server, &format!("{name}:")).is_empty()
        });
    }
    assert!(server.stop().success());
}
