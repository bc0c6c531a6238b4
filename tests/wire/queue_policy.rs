//! Queue policies: priority levels, queue size, queue timeouts, with the request fields of v1 and
//! v2.

use std::thread::sleep;
use std::time::Duration;
use trtserver_tests::http1::request;
use trtserver_tests::scheduled::accumulator;
use trtserver_tests::{Connection, Response, Running, Server, python_v2};

const MINUTE: &str = "default_timeout_microseconds: 60000000";

/// Executes one request at a time and responds with its position in the order of execution. Levels
/// 1 to 3, default 2; `policy` is that of level 2.
fn model(name: &str, policy: &str) -> String {
    let scheduling = format!(
        "dynamic_batching {{ priority_levels: 3 default_priority_level: 2 \
         priority_queue_policy {{ key: 2 value {{ {policy} }} }} }}\n"
    );
    accumulator(name, 1, "slot", &scheduling)
}

#[test]
fn v2_client() {
    let mut server = Server::new();
    for (name, policy) in [
        ("levels", String::new()),
        ("two_wait", "max_queue_size: 2".into()),
        ("late_after_a_tenth", "default_timeout_microseconds: 100000".into()),
        (
            "late_after_a_tenth_too",
            "default_timeout_microseconds: 100000 allow_timeout_override: true".into(),
        ),
        ("may_be_shorter", format!("{MINUTE} allow_timeout_override: true")),
        ("may_not_be_shorter", MINUTE.into()),
        ("no_timeout_to_shorten", "allow_timeout_override: true".into()),
        ("delays", format!("{MINUTE} allow_timeout_override: true timeout_action: DELAY")),
    ] {
        server = server.model(name, model(name, &policy));
    }
    for name in ["one_waits", "one_waits_http"] {
        let full = "dynamic_batching { default_queue_policy { max_queue_size: 1 } }\n";
        server = server.model(name, accumulator(name, 1, "slot", full));
    }
    let none = accumulator("no_levels", 1, "slot", "dynamic_batching { }\n");
    let billions = "dynamic_batching { priority_levels: 10000000000 default_priority_level: 5 }\n";
    let billions = accumulator("billions", 1, "slot", billions);
    let server = server.model("no_levels", none).model("billions", billions).start();
    python_v2(&server, "v2_priorities.py", &[]);
    assert!(server.stop().success());
}

/// The protocol of a request.
#[derive(Clone, Copy, Debug)]
enum Wire {
    V1,
    V2,
}

fn inference(wire: Wire, model: &str, priority: u32, timeout_us: u32) -> Vec<u8> {
    match wire {
        Wire::V1 => {
            let header = format!(
                "batch_size: 1 priority: {priority} timeout_microseconds: {timeout_us} \
                 input {{ name: \"INPUT0\" dims: 1 }} output {{ name: \"OUTPUT0\" }}"
            );
            let path = format!("/api/infer/{model}");
            request("POST", &path, &[("NV-InferRequest", &header)], &1i32.to_le_bytes())
        }
        Wire::V2 => {
            let body = format!(
                r#"{{"parameters":{{"priority":{priority},"timeout":{timeout_us}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[1]}}],"outputs":[{{"name":"OUTPUT0"}}]}}"#
            );
            request("POST", &format!("/v2/models/{model}/infer"), &[], body.as_bytes())
        }
    }
}

fn place(wire: Wire, response: &Response) -> i64 {
    assert_eq!(response.status, 200, "{}", response.error_text());
    match wire {
        Wire::V1 => {
            let bytes = response.body.first_chunk().copied();
            i32::from_le_bytes(bytes.unwrap_or_default()).into()
        }
        Wire::V2 => response.json()["outputs"][0]["data"][0].as_i64().unwrap_or_default(),
    }
}

fn send(server: &Running, request: &[u8]) -> Connection {
    let mut connection = server.connect();
    connection.send(request);
    connection
}

fn waiting(server: &Running, model: &str) -> Option<f64> {
    server
        .metrics(&format!("nv_inference_pending_request_count{{model=\"{model}\",version=\"1\"}}"))
}

fn rejected(server: &Running, model: &str) -> Option<f64> {
    server.metrics(&format!(
        "nv_inference_request_failure{{model=\"{model}\",reason=\"REJECTED\",version=\"1\"}}"
    ))
}

fn is_unavailable(wire: Wire, response: &Response, text: &str) {
    let error_text = response.error_text();
    assert!(error_text.contains(text), "{error_text}");
    match wire {
        Wire::V1 => {
            assert_eq!(response.status, 400);
            assert!(error_text.starts_with("code: UNAVAILABLE "), "{error_text}");
        }
        Wire::V2 => assert_eq!(response.status, 503),
    }
}

/// The delay hook holds each queue until it has five requests.
fn held() -> Server {
    Server::new().env("TRTSERVER_DELAY_SCHEDULER", "5")
}

#[test]
fn highest_priority_first() {
    let server = held().model("one", model("one", "")).model("two", model("two", "")).start();
    for (wire, model) in [(Wire::V1, "one"), (Wire::V2, "two")] {
        let connections = [3, 0, 1, 9, 2].map(|p| send(&server, &inference(wire, model, p, 0)));
        let [low, none, high, beyond, middle] =
            connections.map(|mut connection| place(wire, &connection.response()));
        assert_eq!((high, low), (1, 5), "{wire:?}");
        let mut rest = [none, beyond, middle];
        rest.sort_unstable();
        assert_eq!(rest, [2, 3, 4], "{wire:?}");
    }
}

#[test]
fn full_queue_refuses_requests() {
    let full = |name| model(name, "max_queue_size: 2");
    let server = held().model("one", full("one")).model("two", full("two")).start();
    for (wire, model) in [(Wire::V1, "one"), (Wire::V2, "two")] {
        let mut all: Vec<Connection> =
            (0..2).map(|_| send(&server, &inference(wire, model, 2, 0))).collect();
        server.poll_until("two wait", |server| waiting(server, model) == Some(2.0));
        let refused = server.send(inference(wire, model, 2, 0));
        is_unavailable(wire, &refused, "Exceeds maximum queue size");
        assert_eq!(rejected(&server, model), Some(1.0));
        all.extend((0..3).map(|_| send(&server, &inference(wire, model, 3, 0))));
        let mut places: Vec<i64> =
            all.iter_mut().map(|connection| place(wire, &connection.response())).collect();
        places.sort_unstable();
        assert_eq!(places, [1, 2, 3, 4, 5], "{wire:?}");
    }
}

#[test]
fn queue_timeout_refuses_request() {
    let late = |name| model(name, &format!("{MINUTE} allow_timeout_override: true"));
    let server = held().model("one", late("one")).model("two", late("two")).start();
    for (wire, model) in [(Wire::V1, "one"), (Wire::V2, "two")] {
        let mut late = send(&server, &inference(wire, model, 2, 20_000));
        server.poll_until("the request is queued or refused", |server| {
            waiting(server, model) == Some(1.0) || rejected(server, model) == Some(1.0)
        });
        sleep(Duration::from_millis(30));
        let others: Vec<Connection> =
            (0..5).map(|_| send(&server, &inference(wire, model, 1, 0))).collect();
        is_unavailable(wire, &late.response(), "Request timeout expired");
        for mut other in others {
            assert!(place(wire, &other.response()) <= 5, "{wire:?}");
        }
        assert_eq!(rejected(&server, model), Some(1.0));
    }
}
