//! `--refuse-late-requests`: a request that would wait too long is refused at once, over all
//! endpoints. Executions take at least [`RUN_MS`]; a latch holds the one that others wait for, so
//! that a refusal which comes before it is opened was not waited for.
#![allow(clippy::expect_used, reason = "what these tests cannot do is a failure")]

use crate::load_reports::end_of_call;
use bytes::Bytes;
use http::HeaderMap;
use tokio::runtime::Builder;
use trtserver_tests::http1::request;
use trtserver_tests::scheduled::{NEVER, accumulator, flag, instances, sequences};
use trtserver_tests::{
    Connection, Endpoint, Latch, Response, Running, Server, inference, parameters, probe, python_v2,
};

const RUN_MS: u64 = 300;
/// At most four executions; room for one that a busy machine holds up.
const TARGET: &str = "--queue-wait-target-ms=1500";
const SENT: usize = 8;

/// One instance that executes one request at a time.
fn one_by_one(name: &str, more: &[(&str, &str)]) -> String {
    format!(
        "{}{}{}",
        probe(name, &[("delay_ms", &RUN_MS.to_string())]),
        instances(1),
        parameters(more)
    )
}

fn start(flags: &[&str], more: &[(&str, &str)]) -> Running {
    let server =
        Server::new().model("slow", one_by_one("slow", more)).model("quick", probe("quick", &[]));
    flags.iter().fold(server, |server, flag| server.flag(*flag)).start()
}

/// A request over HTTP that is in flight.
fn send(server: &Running, parameters: &str) -> Connection {
    let mut connection = server.connect();
    connection.send(inference("slow", parameters));
    connection
}

/// Executes one request, so that it is known how long that takes, and holds the next one.
fn hold(server: &Running, latch: &Latch) -> Connection {
    assert_eq!(server.infer("slow", "").status, 200);
    let held = send(server, &latch.parameter());
    latch.wait_for(server, 1);
    held
}

fn waiting(server: &Running) -> Option<f64> {
    server.metrics(r#"nv_inference_pending_request_count{model="slow",version="1"}"#)
}

fn late(server: &Running) -> Option<f64> {
    server.metrics(r#"nv_inference_request_failure{model="slow",reason="LATE",version="1"}"#)
}

/// Sends requests until one is refused, while the instance is held: those that wait, and the
/// refusal.
fn fill(server: &Running, parameters: &str) -> (Vec<Connection>, Response) {
    let mut accepted = Vec::new();
    loop {
        assert!(accepted.len() < SENT, "nothing is refused");
        let before = late(server);
        let mut connection = send(server, parameters);
        let place = accepted.len() as f64 + 1.0;
        server.poll_until("the request is queued or refused", |server| {
            waiting(server) == Some(place) || late(server) != before
        });
        if late(server) != before {
            return (accepted, connection.response());
        }
        accepted.push(connection);
    }
}

fn expect_late(response: &Response, says: &str) {
    // The status of v1 escapes quotes.
    let text = response.error_text().replace('\\', "");
    assert_eq!(response.status, 429, "{text}");
    assert!(text.contains("model 'slow' is busy: the request would wait"), "{text}");
    assert!(text.contains(says), "{text}");
    let after = response.header("retry-after").and_then(|value| value.parse::<u32>().ok());
    assert!(after.is_some_and(|seconds| (1..600).contains(&seconds)), "{after:?}");
}

#[test]
fn late_requests_are_refused_at_once_and_others_answered() {
    let server = start(&["--refuse-late-requests", TARGET], &[]);
    let latch = Latch::new();
    let mut held = hold(&server, &latch);
    let (accepted, refused) = fill(&server, "");
    expect_late(&refused, "beyond the target of 1500 ms (--queue-wait-target-ms)");
    // Behind one that executes, 300 ms each.
    assert!((1..=4).contains(&accepted.len()), "{}", accepted.len());
    // Other models are not concerned.
    assert_eq!(server.infer("quick", "").status, 200);
    refused_over_each_endpoint(&server);
    python_v2(&server, "v2_late_requests.py", &[]);
    let status = server.get("/v2/trtserver/status").json();
    let models = status["models"].as_array().cloned().unwrap_or_default();
    let slow = models.iter().find(|model| model["name"] == "slow").expect("the model");
    assert_eq!(slow["total"]["failures"]["LATE"].as_f64(), late(&server), "{slow}");
    latch.open();
    for mut connection in accepted {
        assert_eq!(connection.response().status, 200);
    }
    assert_eq!(held.response().status, 200);
    // Once the queue is empty, requests are accepted again.
    assert_eq!(server.infer("slow", "").status, 200);
    assert!(server.stop().success());
}

/// The trailers of the gRPC call that infers, whose response has this body.
fn trailers(server: &Running, endpoint: Endpoint) -> (HeaderMap, Bytes) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let path = endpoint.path().expect("a path");
    let message = endpoint.bytes("slow", [1.0, 2.0]);
    runtime.block_on(end_of_call(server.grpc(), path, message, None))
}

fn refused_over_each_endpoint(server: &Running) {
    for endpoint in [Endpoint::HttpV1, Endpoint::HttpV2] {
        expect_late(&server.send(endpoint.bytes("slow", [1.0, 2.0])), "send it again later");
    }
    for endpoint in [Endpoint::GrpcV1, Endpoint::GrpcV2] {
        let (found, _) = trailers(server, endpoint);
        let value =
            |name| found.get(name).and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
        assert_eq!(value("grpc-status"), Some(8), "{endpoint:?} {found:?}");
        let pushback = value("grpc-retry-pushback-ms");
        assert!(pushback.is_some_and(|ms| ms > 1500), "{endpoint:?} {found:?}");
    }
    // A stream goes on: the refusal is the response to one of its requests.
    for endpoint in [Endpoint::StreamV1, Endpoint::StreamV2] {
        let (found, body) = trailers(server, endpoint);
        assert_eq!(found.get("grpc-status").map(|status| status.as_bytes()), Some(&b"0"[..]));
        let text = String::from_utf8_lossy(&body);
        assert!(text.contains("model 'slow' is busy"), "{endpoint:?} {text}");
    }
}

#[test]
fn timeouts_and_models_have_limits_of_their_own() {
    let day = "--queue-wait-target-ms=86400000";
    // Whatever happens to a request that has waited so long, others are refused.
    let queue = "dynamic_batching { default_queue_policy { default_timeout_microseconds: 900000 timeout_action: DELAY } }\n";
    for (flags, more, queue, asks, says) in [
        (
            &["--refuse-late-requests", day][..],
            &[][..],
            "",
            r#""timeout":900000"#,
            "its timeout of 900 ms",
        ),
        (&[TARGET], &[("refuse_late_requests", "true")], "", "", "target of 1500 ms"),
        (&["--refuse-late-requests", day], &[], queue, "", "its timeout of 900 ms"),
    ] {
        let config = one_by_one("slow", more).replace("max_batch_size: 8", "max_batch_size: 1");
        let server = Server::new().model("slow", config + queue);
        let server = flags.iter().fold(server, |server, flag| server.flag(*flag)).start();
        let latch = Latch::new();
        let _held = hold(&server, &latch);
        let (_accepted, refused) = fill(&server, asks);
        expect_late(&refused, says);
        latch.open();
    }
}

#[test]
fn nothing_is_refused_without_the_flag_and_no_sequence_is_interrupted() {
    let flags = ["--refuse-late-requests", "--queue-wait-target-ms=1"];
    for (flags, more) in
        [(&[][..], &[][..]), (&flags[..], &[("refuse_late_requests", "false")][..])]
    {
        let server = start(flags, more);
        let latch = Latch::new();
        let held = hold(&server, &latch);
        let mut all: Vec<_> = (0..3).map(|_| send(&server, r#""timeout":1"#)).collect();
        server.poll_until("all wait", |server| waiting(server) == Some(3.0));
        latch.open();
        all.push(held);
        for mut connection in all {
            assert_eq!(connection.response().status, 200);
        }
        assert_eq!(late(&server), Some(0.0));
    }
    // One slot: another sequence waits for it.
    let scheduling = sequences(NEVER, "direct { }", &[flag("START", "int32")]);
    let server = Server::new().model("slow", accumulator("slow", 1, "slot", &scheduling));
    let server = flags.iter().fold(server, |server, flag| server.flag(*flag)).start();
    let latch = Latch::new();
    let step = |id: u32, start: bool, end: bool, more: &str| {
        let body = format!(
            r#"{{"parameters":{{"sequence_id":{id},"sequence_start":{start},"sequence_end":{end}{more}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[1]}}],"outputs":[{{"name":"OUTPUT0"}}]}}"#
        );
        let mut connection = server.connect();
        connection.send(request("POST", "/v2/models/slow/infer", &[], body.as_bytes()));
        connection
    };
    assert_eq!(step(1, true, false, r#","delay_ms":100"#).response().status, 200);
    let mut held = step(1, false, false, &format!(",{}", latch.parameter()));
    latch.wait_for(&server, 1);
    let mut next = step(1, false, false, "");
    server.poll_until("it waits", |server| waiting(server) == Some(1.0));
    expect_late(&step(2, true, true, "").response(), "beyond the target of 1 ms");
    let mut last = step(1, false, true, "");
    server.poll_until("it waits", |server| waiting(server) == Some(2.0));
    latch.open();
    for connection in [&mut held, &mut next, &mut last] {
        assert_eq!(connection.response().status, 200);
    }
    assert_eq!(late(&server), Some(1.0));
}
