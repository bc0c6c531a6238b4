//! Trace files: what they contain, when they are written, and what a failing disk does.

use super::{
    file_flag, heads, records, timestamps, tracing_server, wait_for_file, wait_for_traces,
};
use serde_json::json;
use std::fs;
use trtserver_tests::control::pair;
use trtserver_tests::isolated::isolated;
use trtserver_tests::{ENDPOINTS, Endpoint, InferenceClient, Server, folder, probe};

/// Times of a request to a model with instances, in their order.
const CORE: [&str; 7] = [
    "REQUEST_START",
    "QUEUE_START",
    "COMPUTE_START",
    "COMPUTE_INPUT_END",
    "COMPUTE_OUTPUT_START",
    "COMPUTE_END",
    "REQUEST_END",
];

#[test]
fn requests_over_each_frontend_are_traced() {
    let folder = folder();
    let file = folder.path().join("trace.json");
    let server = tracing_server().model("echo", probe("echo", &[])).flag(file_flag(&file)).start();
    for endpoint in ENDPOINTS {
        let client = InferenceClient::send(&server, endpoint, "echo", [1.0, 2.0]);
        assert!(client.is_echoed(), "{endpoint:?}");
    }
    wait_for_traces(&server, ENDPOINTS.len());
    assert!(server.stop().success());
    let records = records(&file);
    let mut heads = heads(&records);
    heads.sort();
    assert_eq!(heads.len(), ENDPOINTS.len());
    for ((id, parent, model), endpoint) in heads.iter().zip(ENDPOINTS) {
        assert_eq!((*parent, &**model), (0, "echo"));
        let times = timestamps(&records, *id);
        let time = |name: &str| {
            let found = times.iter().find(|(found, _)| found == name);
            found.unwrap_or_else(|| panic!("{endpoint:?} has no {name}: {times:?}")).1
        };
        let wire = match endpoint {
            Endpoint::HttpV1 | Endpoint::HttpV2 => {
                ["HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END"]
            }
            _ => ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START", "GRPC_SEND_END"],
        };
        let order = [&wire[..2], &CORE, &wire[2..]].concat();
        let in_order: Vec<u64> = order.iter().map(|name| time(name)).collect();
        assert!(in_order.is_sorted(), "{endpoint:?}: {order:?} {in_order:?}");
        time("INFER_RESPONSE_COMPLETE");
    }
}

#[test]
fn steps_and_isolated_models_are_children() {
    let folder = folder();
    let file = folder.path().join("trace.json");
    let server = tracing_server()
        .model("apart", isolated("apart", &[]))
        .model("pair", pair("apart"))
        .flag(file_flag(&file))
        .flag("--trace-config=level=TENSORS")
        .start();
    let body = r#"{"id":"a\"b","inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1.5,-2]}]}"#;
    assert_eq!(server.post("/v2/models/pair/infer", &[], body).status, 200);
    wait_for_traces(&server, 1);
    // The file can be read while the server runs.
    wait_for_file(&file);
    let records = records(&file);
    let heads = heads(&records);
    let [(root, 0, model), (first, parent, step), (second, other, last)] = &heads[..] else {
        panic!("{heads:?}");
    };
    assert_eq!((&**model, &**step, &**last), ("pair", "apart", "apart"));
    assert_eq!((parent, other), (root, root));
    assert_eq!(records[0]["request_id"], "a\"b");
    for id in [first, second] {
        let times = timestamps(&records, *id);
        let found: Vec<_> =
            CORE.iter().filter(|core| times.iter().any(|t| t.0 == **core)).collect();
        assert_eq!(found.len(), CORE.len(), "{times:?}");
    }
    let tensors: Vec<_> = records.iter().filter(|record| record.get("tensor").is_some()).collect();
    let of_root: Vec<_> = tensors.iter().filter(|record| record["id"] == *root).collect();
    assert_eq!(of_root.len(), 2, "input and output: {of_root:?}");
    let input = json!({
        "id": root, "activity": "TENSOR_QUEUE_INPUT",
        "tensor": {"name": "INPUT0", "data": "1.5,-2", "shape": "1,2", "dtype": "FP32"}
    });
    assert_eq!(of_root[0], &&input);
    assert_eq!(of_root[1]["activity"], "TENSOR_BACKEND_OUTPUT");
    let of_step: Vec<_> = tensors
        .iter()
        .filter(|record| record["id"] == *first)
        .map(|record| record["activity"].as_str().unwrap())
        .collect();
    assert_eq!(of_step, ["TENSOR_QUEUE_INPUT", "TENSOR_BACKEND_INPUT", "TENSOR_BACKEND_OUTPUT"]);
    assert!(server.stop().success());
}

/// Requests that backends make, in the server's process and in one of their own.
#[test]
fn nested_requests_are_children() {
    let folder = folder();
    let file = folder.path().join("trace.json");
    let server = tracing_server()
        .model("front", probe("front", &[("infer", "middle")]))
        .model("middle", isolated("middle", &[("infer", "last")]))
        .model("last", probe("last", &[]))
        .flag(file_flag(&file))
        .start();
    assert_eq!(server.infer("front", "").status, 200);
    wait_for_traces(&server, 1);
    assert!(server.stop().success());
    let mut heads = heads(&records(&file));
    heads.sort();
    let models: Vec<_> = heads.iter().map(|(_, _, model)| &**model).collect();
    assert_eq!(models, ["front", "middle", "last"]);
    let parents: Vec<_> = heads.iter().map(|(_, parent, _)| *parent).collect();
    assert_eq!(parents, [0, heads[0].0, heads[1].0]);
}

#[test]
fn files_are_numbered_by_log_frequency_and_count() {
    let folder = folder();
    let file = folder.path().join("trace.json");
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag(file_flag(&file))
        .flag("--trace-config=rate=2")
        .flag("--trace-config=triton,log-frequency=2")
        .start();
    let path = "/v2/models/echo/trace/setting";
    let on = server.post(path, &[], r#"{"trace_level":["TIMESTAMPS"],"trace_count":"3"}"#);
    assert_eq!(on.status, 200, "{}", on.text());
    // One of two is traced, until three are.
    for _ in 0..10 {
        assert_eq!(server.infer("echo", "").status, 200);
    }
    let numbered = |n: u32| folder.path().join(format!("trace.json.{n}"));
    for (n, traces) in [(0, 2), (1, 1)] {
        wait_for_file(&numbered(n));
        assert_eq!(heads(&records(&numbered(n))).len(), traces, "file {n}");
    }
    assert_eq!(server.get(path).json()["trace_count"], "0");
    assert_eq!(server.get("/v2/trace/setting").json()["trace_count"], "-1");
    // What a replaced setting has collected is written.
    server.post(path, &[], r#"{"trace_count":"-1"}"#);
    for _ in 0..2 {
        assert_eq!(server.infer("echo", "").status, 200);
    }
    wait_for_traces(&server, 4);
    assert!(!numbered(2).exists());
    server.post(path, &[], r#"{"trace_level":null,"trace_count":null}"#);
    wait_for_file(&numbered(2));
    assert!(server.stop().success());
    assert!(!file.exists() && !numbered(3).exists());
}

#[test]
fn a_disk_that_fails_is_reported_once_and_holds_up_nothing() {
    let folder = folder();
    let file = folder.path().join("absent/trace.json");
    let server = tracing_server().model("echo", probe("echo", &[])).flag(file_flag(&file)).start();
    for _ in 0..3 {
        assert_eq!(server.infer("echo", "").status, 200);
    }
    server.poll_until("lost traces are counted", |server| {
        server.get("/v2/trtserver/requests").json()["dropped"] == 3
    });
    let metric = r#"trtserver_traces_dropped_total{reason="write_failed"}"#;
    assert_eq!(server.metrics(metric), Some(3.0));
    // The line may reach this test after the count.
    server.wait_for_log("traces are missing in the trace file");
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("traces are missing in the trace file"));
    assert_eq!(lines.count(), 1, "{log}");
    assert!(log.contains("absent/trace.json"), "{log}");
    assert!(server.stop().success());
    assert!(fs::metadata(&file).is_err());
}
