//! Traces in memory: slow and failed requests, and those that were sampled, by their ids.

use super::{tracing_server, wait_for_traces};
use serde_json::json;
use trtserver_tests::{ENDPOINTS, InferenceClient, Server, inference, probe};

fn with_id(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}}]}}"#
    )
}

#[test]
fn failed_and_slow_requests_are_kept_without_sampling() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("fails", probe("fails", &[("fail", "told to fail"), ("fail_code", "4")]))
        .flag("--trace-slow-ms=60000")
        .start();
    for endpoint in ENDPOINTS {
        assert!(InferenceClient::send(&server, endpoint, "echo", [1.0, 2.0]).is_echoed());
    }
    let infer =
        |model: &str, body: &str| server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(infer("fails", &with_id("a/b %\\\"")).status, 503);
    assert_eq!(infer("echo", r#"{"id":"refused","inputs":[]}"#).status, 400);
    let list = wait_for_traces(&server, 2);
    assert!(list.iter().all(|trace| trace["kept"] == "failed"), "{list:?}");
    let refused = list.iter().find(|trace| trace["model"] == "echo").unwrap();
    assert_eq!(refused["status"], 400);
    let found = server.get("/v2/trtserver/requests/a%2Fb%20%25%22");
    assert_eq!(found.status, 200, "{}", found.text());
    let found = found.json();
    assert_eq!((&found["id"], &found["status"]), (&json!("a/b %\""), &json!(503)));
    assert_eq!(found["error"], "told to fail");
    let absent = server.get("/v2/trtserver/requests/nobody");
    assert_eq!(absent.status, 404);
    assert!(absent.error_text().contains("'nobody'"), "{}", absent.text());
    assert!(server.stop().success());

    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag("--trace-slow-ms=0")
        .flag("--trace-kept=2")
        .start();
    for id in ["a", "b", "c"] {
        assert_eq!(server.post("/v2/models/echo/infer", &[], with_id(id)).status, 200);
    }
    server.poll_until("the last trace", |server| {
        server.get("/v2/trtserver/requests/c").status == 200
    });
    let list = wait_for_traces(&server, 2);
    let ids: Vec<_> = list.iter().map(|trace| trace["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["c", "b"], "the newest first");
    assert!(server.stop().success());
}

#[test]
fn a_request_is_explained_by_its_id() {
    let batching =
        "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 20000000 }\n";
    let server = tracing_server()
        .model("echo", probe("echo", &[]) + batching)
        .flag("--trace-kept=10")
        .start();
    let context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    std::thread::scope(|scope| {
        for id in ["x", "y"] {
            let server = &server;
            scope.spawn(move || {
                let headers = [("traceparent", context)];
                let headers = if id == "x" { &headers[..] } else { &[] };
                let response = server.post("/v2/models/echo/infer", headers, with_id(id));
                assert_eq!(response.status, 200, "{}", response.text());
            });
        }
    });
    wait_for_traces(&server, 2);
    let found = server.get("/v2/trtserver/requests/x").json();
    let by_context = server.get("/v2/trtserver/requests/0af7651916cd43dd8448eb211c80319c").json();
    assert_eq!(found, by_context);
    assert_eq!(found["traceparent"], context);
    assert_eq!((&found["protocol"], &found["status"]), (&json!("v2 HTTP"), &json!(200)));
    assert_eq!((&found["input_bytes"], &found["output_bytes"]), (&json!(8), &json!(8)));
    let span = &found["spans"][0];
    let batch = &span["batch"];
    assert_eq!((&batch["requests"], &batch["rows"]), (&json!(2), &json!(2)), "{found}");
    assert_eq!((&batch["closed"], &batch["with"]), (&json!("preferred"), &json!(["y"])));
    for phase in
        ["receive_us", "queue_us", "copy_input_us", "compute_us", "copy_output_us", "send_us"]
    {
        let us = span[phase].as_f64().unwrap_or_else(|| panic!("{phase}: {found}"));
        assert!(us >= 0.0 && us <= found["total_us"].as_f64().unwrap(), "{phase}: {found}");
    }
    assert!(server.stop().success());
}

/// Nothing is in memory by default, and nothing is recorded.
#[test]
fn nothing_is_traced_by_default() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    assert_eq!(server.send(inference("echo", "")).status, 200);
    let shown = server.get("/v2/trtserver/requests");
    assert_eq!(shown.text(), r#"{"requests":[],"dropped":0}"#);
    assert!(server.stop().success());
}
