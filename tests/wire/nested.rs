//! Nested inference: models that send requests to other models, ask for their status, load and
//! unload them.

use serde_json::json;
use std::fs;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::http1::Response;
use trtserver_tests::isolated::{is_alive, isolated, kill, stop, wait_until_served};
use trtserver_tests::{Endpoint, InferenceClient, Running, Server, probe};

const DECOUPLED: &str = "model_transaction_policy { decoupled: true }\n";

#[track_caller]
fn fails_with(response: &Response, status: u16, text: &str) {
    assert_eq!(response.status, status, "{}", response.text());
    assert!(response.error_text().contains(text), "{}", response.text());
}

/// The values of OUTPUT0, and how many responses the model that was called has sent.
#[track_caller]
fn outcome(response: &Response) -> (serde_json::Value, serde_json::Value) {
    assert_eq!(response.status, 200, "{}", response.text());
    let json = response.json();
    (json["outputs"][0]["data"].clone(), json["parameters"]["responses"].clone())
}

fn infer_with(server: &Running, model: &str, values: &[f32], parameters: &str) -> Response {
    let body = format!(
        r#"{{"parameters":{{{parameters}}},"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,{}],"data":{values:?}}}]}}"#,
        values.len()
    );
    server.post(&format!("/v2/models/{model}/infer"), &[], body)
}

#[test]
fn models_call_models() {
    let two = "instance_group [ { count: 2 kind: KIND_CPU } ]\n";
    let wide = probe("wide", &[]).replace("dims: [ -1 ]", "dims: [ 3 ]");
    let server = Server::new()
        .model("first", probe("first", &[("infer", "second")]))
        .model("second", probe("second", &[("infer", "third")]))
        .model("third", probe("third", &[("base_file", "base")]))
        .file("third/1/base", "10")
        .model("fails", probe("fails", &[("fail", "told to fail"), ("fail_code", "4")]))
        .model("wide", wide)
        .model("many", probe("many", &[]) + DECOUPLED)
        .model("self", probe("self", &[]) + two)
        .model("isolated", probe("isolated", &[("isolation", "process")]))
        .model("front", probe("front", &[]))
        .model(
            "ensemble",
            trtserver_tests::control::pair("third").replace("\"pair\"", "\"ensemble\""),
        )
        .start();
    let call = |model: &str, parameters: &str| infer_with(&server, model, &[1.0, 2.0], parameters);

    // A chain of three, which all count the request.
    assert_eq!(outcome(&call("first", "")), (json!([11.0, 12.0]), json!(1)));
    for model in ["first", "second", "third"] {
        let counted = format!(r#"nv_inference_request_success{{model="{model}",version="1"}}"#);
        assert_eq!(server.metrics(&counted), Some(1.0), "{model}");
    }
    // From another thread, after `execute` has returned.
    let detached = call("front", r#""infer":"third","detach":true"#);
    assert_eq!(outcome(&detached), (json!([11.0, 12.0]), json!(1)));
    assert_eq!(outcome(&call("front", r#""infer":"isolated""#)), (json!([1.0, 2.0]), json!(1)));
    assert_eq!(outcome(&call("front", r#""infer":"ensemble""#)), (json!([21.0, 22.0]), json!(1)));

    // The model's error and those of the server reach the client.
    fails_with(&call("front", r#""infer":"fails""#), 503, "told to fail");
    fails_with(&call("front", r#""infer":"nobody""#), 404, "'nobody' is not found");
    let wrong = call("front", r#""infer":"wide""#);
    fails_with(&wrong, 400, "unexpected shape for input 'INPUT0' for model 'wide'");

    // Decoupled models.
    for n in [1, 3, 40] {
        let parameters = format!(r#""infer":"many","infer_responses":{n}"#);
        assert_eq!(outcome(&call("front", &parameters)), (json!([1.0, 2.0]), json!(n)));
    }

    // A model that calls itself, on its other instance.
    assert_eq!(outcome(&call("self", r#""infer":"self""#)), (json!([1.0, 2.0]), json!(1)));

    // A tensor that is larger than what fits into one message of an isolated model's ring.
    let large: Vec<f32> = (0..60_000u16).map(f32::from).collect();
    let echoed = infer_with(&server, "front", &large, r#""infer":"isolated""#);
    assert!(outcome(&echoed).0 == json!(large));

    let status = call("front", r#""status":"many""#);
    let expected = "ModelStatus { version: Some(1), ready: true, decoupled: true }";
    fails_with(&status, 400, expected);
    fails_with(&call("front", r#""status":"nobody""#), 404, "'nobody' is not found");
    fails_with(
        &call("front", r#""load":"third""#),
        503,
        "explicit model load / unload is not allowed",
    );
    assert!(server.stop().success());
}

#[test]
fn nested_requests_are_cancelled() {
    let server = Server::new()
        .model("stuck", probe("stuck", &[("until_cancelled", "true")]))
        .model("front", probe("front", &[("infer", "stuck")]))
        .start();
    let cancelled = |server: &Running| {
        let sample = r#"trtserver_request_cancelled_total{model="stuck",version="1",when="#;
        let of = |when: &str| server.metrics(&format!("{sample}\"{when}\"}}")).unwrap_or(0.0);
        of("queued") + of("executing")
    };
    // By the client of the model that sent it.
    let client = InferenceClient::send(&server, Endpoint::HttpV2, "front", [1.0, 2.0]);
    server.wait_for_log("the probe waits to be cancelled");
    drop(client);
    server.poll_until("the request is cancelled", |server| cancelled(server) == 1.0);
    // By that model.
    let response = server.infer("front", r#""infer_cancelled":true"#);
    assert!(response.error_text().contains("cancelled"), "{}", response.text());
    assert_eq!(cancelled(&server), 2.0);
    assert!(server.stop().success());
}

#[test]
fn models_load_and_unload_models() {
    let server = explicit()
        .model("front", probe("front", &[]))
        .model("other", probe("other", &[]))
        .model("echo", probe("echo", &[]))
        .flag("--load-model=front")
        .flag("--load-model=echo")
        .start();
    let status = |expected: &str| {
        fails_with(&server.infer("front", r#""status":"other""#), 400, expected);
    };
    assert_eq!(server.infer("front", r#""status":"other""#).status, 404);
    fails_with(&server.infer("front", r#""infer":"other""#), 404, "other");
    let loaded = server.infer("front", r#""load":"other","infer":"other""#);
    assert_eq!(outcome(&loaded), (json!([1.0, 2.0]), json!(1)));
    status("ModelStatus { version: Some(1), ready: true, decoupled: false }");
    let unloaded = server.infer("front", r#""unload":"other","infer":"echo","detach":true"#);
    assert_eq!(outcome(&unloaded), (json!([1.0, 2.0]), json!(1)));
    status("ModelStatus { version: None, ready: false, decoupled: false }");
    for act in ["load", "unload"] {
        let response = server.infer("front", &format!(r#""{act}":"front""#));
        fails_with(&response, 400, &format!("model 'front' cannot {act} itself"));
    }
    fails_with(&server.infer("front", r#""load":"nobody""#), 500, "failed to load 'nobody'");
    let config = r#""load":"other","load_config":"{\"max_batch_size\":-1}""#;
    fails_with(&server.infer("front", config), 400, "load failed for model 'other'");
    assert!(server.stop().success());
}

/// The calls of a model in a process of its own travel to the server.
#[test]
fn isolated_models_call_models() {
    let wide = probe("wide", &[]).replace("dims: [ -1 ]", "dims: [ 3 ]");
    let two = "instance_group [ { count: 2 kind: KIND_CPU } ]\n";
    let server = explicit()
        .model("front", isolated("front", &[]))
        .model("middle", isolated("middle", &[("infer", "third")]))
        .model("third", probe("third", &[("base_file", "base")]))
        .file("third/1/base", "10")
        .model("fails", probe("fails", &[("fail", "told to fail"), ("fail_code", "4")]))
        .model("wide", wide)
        .model("many", probe("many", &[]) + DECOUPLED)
        .model("self", isolated("self", &[]) + two)
        .model("other", probe("other", &[]))
        .flag("--load-model=*")
        .start();
    let call = |model: &str, parameters: &str| infer_with(&server, model, &[1.0, 2.0], parameters);
    assert_eq!(outcome(&call("front", r#""infer":"third""#)), (json!([11.0, 12.0]), json!(1)));
    let detached = call("front", r#""infer":"third","detach":true"#);
    assert_eq!(outcome(&detached), (json!([11.0, 12.0]), json!(1)));
    // From one process into another.
    assert_eq!(outcome(&call("front", r#""infer":"middle""#)), (json!([11.0, 12.0]), json!(1)));
    assert_eq!(outcome(&call("self", r#""infer":"self""#)), (json!([1.0, 2.0]), json!(1)));
    for n in [1, 3, 40] {
        let parameters = format!(r#""infer":"many","infer_responses":{n}"#);
        assert_eq!(outcome(&call("front", &parameters)), (json!([1.0, 2.0]), json!(n)));
    }
    let large: Vec<f32> = (0..600_000u32).map(|i| i as f32).collect();
    let echoed = infer_with(&server, "front", &large, r#""infer":"many","infer_responses":1"#);
    assert!(outcome(&echoed).0 == json!(large));

    fails_with(&call("front", r#""infer":"fails""#), 503, "told to fail");
    fails_with(&call("front", r#""infer":"nobody""#), 404, "'nobody' is not found");
    let wrong = call("front", r#""infer":"wide""#);
    fails_with(&wrong, 400, "unexpected shape for input 'INPUT0' for model 'wide'");
    let status = call("front", r#""status":"many""#);
    fails_with(&status, 400, "ModelStatus { version: Some(1), ready: true, decoupled: true }");
    fails_with(&call("front", r#""status":"nobody""#), 404, "'nobody' is not found");

    // Loading and unloading.
    assert_eq!(outcome(&call("front", r#""unload":"other","infer":"third""#)).1, json!(1));
    let status = call("front", r#""status":"other""#);
    fails_with(&status, 400, "ModelStatus { version: None, ready: false, decoupled: false }");
    assert_eq!(outcome(&call("front", r#""load":"other","infer":"other""#)).1, json!(1));
    fails_with(&call("front", r#""load":"front""#), 400, "model 'front' cannot load itself");
    fails_with(&call("front", r#""load":"absent""#), 500, "failed to load 'absent'");
    assert!(server.stop().success());
}

#[test]
fn nested_requests_of_a_child_process_end_with_it() {
    let server = Server::new()
        .model("stuck", probe("stuck", &[("until_cancelled", "true")]))
        .model("echo", probe("echo", &[]))
        .model("front", isolated("front", &[]))
        .start();
    let cancelled = |server: &Running| {
        let sample = r#"trtserver_request_cancelled_total{model="stuck",version="1",when="#;
        let of = |when: &str| server.metrics(&format!("{sample}\"{when}\"}}")).unwrap_or(0.0);
        of("queued") + of("executing")
    };
    // By the end of the process that sent it.
    std::thread::scope(|scope| {
        let lost = scope.spawn(|| server.infer("front", r#""infer":"stuck""#));
        server.wait_for_log("the probe waits to be cancelled");
        kill(&server, "front");
        fails_with(&lost.join().unwrap(), 500, "SIGKILL");
    });
    server.poll_until("the request is cancelled", |server| cancelled(server) == 1.0);
    wait_until_served(&server, "front");
    assert_eq!(outcome(&server.infer("front", r#""infer":"echo""#)).1, json!(1));
    // By the model.
    let response = server.infer("front", r#""infer":"stuck","infer_cancelled":true"#);
    assert!(response.error_text().contains("cancelled"), "{}", response.text());
    assert_eq!(cancelled(&server), 2.0);
    assert!(server.stop().success());
}

/// Inference with one FP32 input of that many zeros.
fn large(server: &Running, model: &str, values: usize, parameters: &str) -> Response {
    let bytes = values * 4;
    let json = format!(
        r#"{{"parameters":{{"binary_data_output":true{parameters}}},"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,{values}],"parameters":{{"binary_data_size":{bytes}}}}}]}}"#,
    );
    let head = [("Inference-Header-Content-Length", json.len().to_string())];
    let head = head.each_ref().map(|(name, value)| (*name, value.as_str()));
    let body = [json.as_bytes(), &vec![0; bytes]].concat();
    server.post(&format!("/v2/models/{model}/infer"), &head, body)
}

/// Parameters and the version reach the model that sent the request.
#[test]
fn responses_tell_version_and_parameters() {
    let server = Server::new()
        .model("local", probe("local", &[]))
        .model("isolated", isolated("isolated", &[]))
        .model("inner", probe("inner", &[("infer", "last")]))
        .file("inner/3/empty", "")
        .model("last", probe("last", &[]))
        .start();
    for model in ["local", "isolated"] {
        let response = infer_with(&server, model, &[1.0], r#""infer":"inner""#).json();
        let parameters = &response["parameters"];
        assert_eq!(parameters["version"], json!(3), "{model}: {response}");
        assert_eq!(parameters["of_responses"], json!("1"), "{model}: {response}");
        assert_eq!(parameters["of_version"], json!("1"), "{model}: {response}");
    }
    assert!(server.stop().success());
}

/// A model does not send more than the limit of unread responses to a handler that does not return.
#[test]
fn responses_to_a_slow_handler_are_limited() {
    for sender in [probe("front", &[]), isolated("front", &[])] {
        let server = Server::new()
            .model("front", sender)
            .model("many", probe("many", &[]) + DECOUPLED)
            .start();
        let file = server.models().path().join("go_on");
        let parameters = format!(
            r#","infer":"many","infer_responses":60,"infer_until_file":"{}""#,
            file.display()
        );
        std::thread::scope(|scope| {
            // 60 responses of 1 MiB; the limit is 8 MiB.
            let client = scope.spawn(|| large(&server, "front", 1 << 18, &parameters));
            server.wait_for_log("the handler of the probe waits");
            std::thread::sleep(std::time::Duration::from_millis(300));
            let done = server.metrics(r#"nv_inference_request_success{model="many",version="1"}"#);
            fs::write(&file, "").expect("a file in a folder of ours");
            assert_eq!(done.unwrap_or(0.0), 0.0, "the model has sent all responses");
            let response = client.join().expect("the request");
            assert_eq!(response.status, 200, "{}", response.text());
            let json = String::from_utf8_lossy(&response.body[..300]).into_owned();
            assert!(json.contains(r#""responses":60"#), "{json}");
        });
        assert!(server.stop().success());
    }
}

/// A child that stopped reading, with a large response on its way to it, delays neither its unload
/// nor other models.
#[test]
fn stopped_child_with_a_large_response_can_be_unloaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("respond");
    let waits = [("until_file", &*file.to_string_lossy())];
    let server = explicit()
        .model("front", isolated("front", &[]))
        .model("echo", probe("echo", &waits))
        .flag("--load-model=*")
        .flag("--exit-timeout-secs=1")
        .start();
    std::thread::scope(|scope| {
        let lost = scope.spawn(|| large(&server, "front", 4 << 20, r#","infer":"echo""#));
        server.wait_for_log("the probe waits for the file");
        let pid = stop(&server, "front");
        fs::write(&file, "").expect("a file in a folder of ours");
        let done = r#"nv_inference_request_success{model="echo",version="1"}"#;
        server.poll_until("the response is sent", |s| s.metrics(done) == Some(1.0));
        assert_eq!(server.infer("echo", "").status, 200);
        assert_ok(server.unload("front"));
        let response = lost.join().expect("the request");
        fails_with(&response, 500, "while its model was being unloaded");
        server.poll_until("its process is gone", |_| !is_alive(pid));
    });
    assert_ok(server.load("front"));
    assert_eq!(server.infer("front", "").status, 200);
    assert!(server.stop().success());
}

/// An isolated model sends and receives at most 64 MiB at once.
#[test]
fn too_large_request_of_an_isolated_model_fails() {
    let server = Server::new()
        .model("front", isolated("front", &[]))
        .model("echo", probe("echo", &[]))
        .start();
    let response = large(&server, "front", 17 << 20, r#","infer":"echo""#);
    fails_with(&response, 400, "too long for the connection between two processes");
    assert_eq!(large(&server, "front", 8 << 20, r#","infer":"echo""#).status, 200);
    assert!(server.stop().success());
}
