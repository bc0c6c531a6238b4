//! `--drain-delay-secs`: after SIGTERM the server is not ready and serves.

use std::time::{Duration, Instant};
use trtserver_tests::grpc::field;
use trtserver_tests::http1::request;
use trtserver_tests::http2::{Client, End, call_headers, message};
use trtserver_tests::{Server, Signal, inference, probe};

const LOG: &str = "Not ready. Requests are accepted for";

fn echo() -> Server {
    Server::new().model("echo", probe("echo", &[]))
}

#[test]
fn server_is_not_ready_and_serves_until_the_delay_has_passed() {
    let server = echo().flag("--drain-delay-secs=2").flag("--strict-readiness=false").start();
    let begin = Instant::now();
    server.signal(Signal::TERM);
    server.wait_for_log(LOG);
    for (path, status) in [
        ("/v2/health/ready", 400),
        ("/api/health/ready", 400),
        ("/v2/health/live", 200),
        ("/api/health/live", 200),
        ("/v2/models/echo/ready", 200),
    ] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
    let reason = server.get_json("/v2/health/ready").json()["reason"].to_string();
    assert!(reason.contains("the drain delay of 2 s"), "{reason}");
    // grpc.health.v1: NOT_SERVING.
    let mut client = Client::open(server.grpc());
    let call = client.call(&call_headers("/grpc.health.v1.Health/Check"));
    client.send(call, &message(&field(1, b"")), true);
    let ended = client.end(call);
    assert_eq!((ended.end, &ended.body[5..]), (End::Responded, &[8, 2][..]));
    let mut served = 0;
    while !server.log().contains("Waiting for in-flight inferences to complete.") {
        // The last one may find the drain begun.
        let response = server.connect().send(inference("echo", "")).try_response();
        served += u32::from(response.is_some_and(|response| response.status == 200));
    }
    assert!(served > 10, "{served}");
    let ended = server.wait();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let took = begin.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(10)).contains(&took), "{took:?}");
}

#[test]
fn kept_connections_are_sent_away_before_requests_are_refused() {
    let server = echo().flag("--drain-delay-secs=4").start();
    let mut busy = server.connect();
    assert_eq!(busy.send(inference("echo", "")).response().status, 200);
    let mut idle = server.connect();
    let live = request("GET", "/v2/health/live", &[], b"");
    assert_eq!(idle.send(live).response().status, 200);
    let mut calls = Client::open(server.grpc());
    server.signal(Signal::TERM);
    server.wait_for_log(LOG);
    let begin = Instant::now();
    let mut responses = 0;
    loop {
        let response = busy.send(inference("echo", "")).response();
        assert_eq!(response.status, 200, "{}", response.text());
        responses += 1;
        if response.header("connection") == Some("close") {
            break;
        }
    }
    let took = begin.elapsed();
    assert!(responses > 1, "the first half of the delay leaves connections alone");
    assert!((Duration::from_secs(1)..Duration::from_secs(4)).contains(&took), "{took:?}");
    assert!(busy.is_closed());
    assert!(idle.is_closed());
    // GOAWAY.
    assert_eq!(calls.end(1).end, End::Closed);
    // A new connection is served.
    assert_eq!(server.infer("echo", "").status, 200);
    assert!(!server.log().contains("Waiting for in-flight"), "{}", server.log());
    assert_eq!(server.wait().code(), 0);
}

#[test]
fn other_signals_end_without_delay_and_a_second_one_at_once() {
    let delayed = || echo().flag("--drain-delay-secs=50").start();
    for signal in [Signal::INT, Signal::QUIT] {
        let server = delayed();
        server.signal(signal);
        let ended = server.wait_within(Duration::from_secs(20));
        assert_eq!(ended.code(), 0, "{}", ended.stderr);
        assert!(!ended.stderr.contains(LOG), "{}", ended.stderr);
    }
    let server = delayed();
    server.signal(Signal::TERM);
    server.wait_for_log(LOG);
    server.signal(Signal::TERM);
    assert_eq!(server.wait_within(Duration::from_secs(20)).code(), 1);
}
