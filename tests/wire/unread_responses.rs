//! Responses that a client does not read: limited per stream, per connection and in total; a
//! backend that sends them waits.

use std::time::{Duration, Instant};
use trtserver_tests::grpc::{INFER, STREAM, field, infer_v1_raw, infer_v2_raw};
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::{Running, Server, probe};

const DECOUPLED: &str = "model_transaction_policy { decoupled: true }\n";
const MIB: usize = 1 << 20;

/// Decoupled models, local and isolated, that send 2,000 responses to each request.
fn server() -> Server {
    let models = [("local", "none"), ("isolated", "process")];
    models.into_iter().fold(Server::new(), |server, (name, isolation)| {
        let parameters = [("responses", "2000"), ("isolation", isolation)];
        server.model(name, probe(name, &parameters) + DECOUPLED)
    })
}

/// A stream whose client does not permit the server to send anything, with one request of 256 KiB.
fn unread_stream(server: &Running, model: &str) -> (Client, u32) {
    let mut client = Client::open_without_window(server.grpc());
    let call = client.call(&call_headers(STREAM[0]));
    let batches = || counter(server, "trtserver_batch_rows_count", &model_labels(model));
    let before = batches();
    client.send(call, &message(&infer_v2_raw(model, &[0; MIB / 4])), false);
    server.poll_until("the request is executed", |_| batches() > before);
    (client, call)
}

/// Labels of a model's metrics.
fn model_labels(model: &str) -> String {
    format!(r#"model="{model}",version="1""#)
}

fn counter(server: &Running, name: &str, labels: &str) -> f64 {
    let name = if labels.is_empty() { name.to_owned() } else { format!("{name}{{{labels}}}") };
    server.metrics(&name).unwrap_or_else(|| panic!("no {name}"))
}

/// Requests of a model that were cancelled while they were executed.
fn cancelled(server: &Running, model: &str) -> f64 {
    let labels = format!(r#"model="{model}",version="1",when="executing""#);
    counter(server, "trtserver_request_cancelled_total", &labels)
}

#[test]
fn decoupled_model_waits_for_its_client() {
    let server = server().flag("--max-unread-per-stream=4M").start();
    for model in ["local", "isolated"] {
        let before = server.resident_kib();
        let (mut client, call) = unread_stream(&server, model);
        std::thread::sleep(Duration::from_secs(1));
        let grown = server.resident_kib().saturating_sub(before);
        assert!(grown < 40 << 10, "{model}: the server grew by {grown} KiB");
        // The client reads on, and gets responses as before: 20 of them are more than the limit.
        client.permit(call, 6 * MIB as u32);
        client.wait_for_data(call, 5 * MIB);
        drop(client);
        let what = format!("the request of {model} is counted as cancelled");
        server.poll_until(&what, |server| cancelled(server, model) == 1.0);
    }
    assert!(server.stop().success());
}

/// RST_STREAM and a closed connection end the wait of the backend at once.
#[test]
fn disconnect_ends_the_wait_of_a_backend_at_once() {
    let server = server().start();
    for model in ["local", "isolated"] {
        for resets in [true, false] {
            let (mut client, call) = unread_stream(&server, model);
            std::thread::sleep(Duration::from_millis(300));
            let before = cancelled(&server, model);
            let begin = Instant::now();
            if resets {
                client.reset(call);
            } else {
                client = Client::open(server.grpc());
            }
            let what = format!("{model} is idle");
            server.poll_until(&what, |server| cancelled(server, model) > before);
            assert!(begin.elapsed() < Duration::from_secs(2), "{what} after {:?}", begin.elapsed());
            drop(client);
        }
    }
    assert!(server.stop().success());
}

#[test]
fn backend_may_ask_instead_of_waiting() {
    for isolation in ["none", "process"] {
        let parameters = [("responses", "2000"), ("try_more", "true"), ("isolation", isolation)];
        let server = Server::new()
            .model("asks", probe("asks", &parameters) + DECOUPLED)
            .flag("--max-unread-per-stream=1M")
            .start();
        let (mut client, call) = unread_stream(&server, "asks");
        let failures = |reason: &str| {
            let labels = format!(r#"model="asks",reason="{reason}",version="1""#);
            counter(&server, "nv_inference_request_failure", &labels)
        };
        server.poll_until("the request failed", |_| failures("BACKEND") == 1.0);
        client.send(call, &[], true);
        client.permit(call, 8 * MIB as u32);
        let ended = client.end(call);
        let text = String::from_utf8_lossy(&ended.body[ended.body.len() - 200..]);
        assert!(text.contains(" bytes are unread, the limit is 1048576"), "{isolation}: {text}");
        assert!(ended.body.len() < 2 * MIB, "{isolation}: {} bytes", ended.body.len());
        assert!(server.stop().success());
    }
}

/// A client that reads nothing holds an instance for a limited time.
#[test]
fn stalled_client_does_not_hold_an_instance() {
    for isolation in ["none", "process"] {
        let parameters = [("responses", "2000"), ("isolation", isolation)];
        let server = Server::new()
            .model("slow", probe("slow", &parameters) + DECOUPLED)
            .flag("--max-unread-per-stream=1M")
            .flag("--unread-timeout-secs=1")
            .start();
        let client = unread_stream(&server, "slow");
        let labels = r#"model="slow",reason="BACKEND",version="1""#;
        server.poll_until("the request failed", |server| {
            counter(server, "nv_inference_request_failure", labels) == 1.0
        });
        drop(client);
        assert!(server.stop().success());
    }
}

/// Responses of a later request, held back by `preserve_ordering`, reach the limit before the
/// earlier request sends one.
#[test]
fn held_back_responses_do_not_block_the_request_before_them() {
    let more = "dynamic_batching { preserve_ordering: true }\ninstance_group [ { count: 2 kind: KIND_CPU } ]\n";
    let config = probe("ordered", &[("responses", "20"), ("isolation", "process")]);
    let server = Server::new()
        .model("ordered", config + DECOUPLED + more)
        .flag("--max-unread-per-stream=1M")
        .flag("--unread-timeout-secs=3")
        .start();
    let mut client = Client::open_without_window(server.grpc());
    let call = client.call(&call_headers(STREAM[0]));
    client.permit(call, 32 * MIB as u32);
    let batches = || counter(&server, "trtserver_batch_rows_count", &model_labels("ordered"));
    let request = infer_v2_raw("ordered", &[0; MIB / 4]);
    let delay = field(4, &[field(1, b"delay_ms"), field(2, &field(3, b"1000"))].concat());
    client.send(call, &message(&[delay, request.clone()].concat()), false);
    server.poll_until("the first request is executed", |_| batches() == 1.0);
    client.send(call, &message(&request), false);
    server.poll_until("the second request is executed", |_| batches() == 2.0);
    client.send(call, &[], true);
    let body = client.ends(&[call])[&call];
    assert!(body > 40 * MIB / 4, "{body} bytes");
    assert!(server.stop().success());
}

/// Unary calls: beyond the limit of their connection responses are errors and further calls wait;
/// other connections are served.
#[test]
fn unread_unary_responses_are_limited_by_connection() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag("--max-unread-per-connection=1M")
        .start();
    let headers = call_headers(INFER[0]);
    let begin = |client: &mut Client, values: usize| {
        let call = client.call(&headers);
        client.send(call, &message(&infer_v2_raw("echo", &vec![0; 4 * values])), true);
        call
    };
    let executed = || counter(&server, "nv_inference_request_success", &model_labels("echo"));
    let mut client = Client::open_without_window(server.grpc());
    let mut calls: Vec<u32> = (0..30).map(|_| begin(&mut client, MIB / 16)).collect();
    // Two responses reach the half of the limit at which calls wait; calls that had begun before
    // may add a few.
    server.poll_until("two calls are executed", |_| executed() >= 2.0);
    std::thread::sleep(Duration::from_millis(500));
    let before = executed();
    assert!(before < 30.0, "{before} calls were executed");
    calls.push(begin(&mut client, 2));
    let mut other = Client::open(server.grpc());
    let call = begin(&mut other, 2);
    assert_eq!(other.end(call).status, Some(0));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(executed(), before + 1.0, "the last call must wait");
    calls.iter().for_each(|call| client.permit(*call, MIB as u32));
    let bodies = client.ends(&calls);
    let responses = calls.iter().take(30).filter(|call| bodies[call] > MIB / 4).count();
    assert!(responses >= 2, "{bodies:?}");
    assert!(bodies[&calls[30]] > 0, "the call that waited has no response");
    assert_eq!(executed(), 32.0);
    assert!(server.stop().success());
}

/// Calls that have begun before the limit of their connection is reached: responses beyond it are
/// errors.
#[test]
fn unary_responses_beyond_the_connection_limit_are_refused() {
    let server = Server::new()
        .model("slow", probe("slow", &[("delay_ms", "100")]))
        .flag("--max-unread-per-connection=1M")
        .start();
    let mut client = Client::open_without_window(server.grpc());
    let request = message(&infer_v2_raw("slow", &[0; MIB / 4]));
    let mut begin = || {
        let call = client.call(&call_headers(INFER[0]));
        client.send(call, &request, true);
        call
    };
    let calls: Vec<u32> = (0..8).map(|_| begin()).collect();
    server.poll_until("all calls are executed", |server| {
        counter(server, "nv_inference_request_success", &model_labels("slow")) == 8.0
    });
    std::thread::sleep(Duration::from_millis(200));
    calls.iter().for_each(|call| client.permit(*call, MIB as u32));
    let bodies = client.ends(&calls);
    let refused = bodies.values().filter(|bytes| **bytes == 0).count();
    let complete = bodies.values().filter(|bytes| **bytes > MIB / 4).count();
    assert_eq!((complete, refused), (4, 4), "{bodies:?}");
    assert!(server.stop().success());
}

/// Responses that are too small to be drawn from the memory budget one by one.
#[test]
fn unread_responses_of_all_streams_draw_on_the_memory_budget() {
    let eight = "instance_group [ { kind: KIND_CPU count: 8 } ]\n";
    let server = Server::new()
        .model("many", probe("many", &[("responses", "2000")]) + DECOUPLED + eight)
        .model("echo", probe("echo", &[]))
        .flag("--max-request-memory=32M")
        .start();
    let in_use = |server: &Running| counter(server, "trtserver_request_memory_bytes", "");
    let before = server.resident_kib();
    // Each may have 16 MiB unread.
    let request = message(&infer_v2_raw("many", &[0; 48 << 10]));
    let streams: Vec<Client> = (0..8)
        .map(|_| {
            let mut client = Client::open_without_window(server.grpc());
            let call = client.call(&call_headers(STREAM[0]));
            client.send(call, &request, false);
            client
        })
        .collect();
    let most = (32 * MIB) as f64;
    server.poll_until("the budget is used up", |server| in_use(server) > 0.9 * most);
    std::thread::sleep(Duration::from_secs(1));
    // A few calls of each connection are counted whether they fit or not.
    assert!(in_use(&server) <= most + f64::from(8 * (96 << 10)));
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 72 << 10, "the server grew by {grown} KiB");
    assert_eq!(server.infer("echo", "").status, 200);
    drop(streams);
    server.poll_until("all memory is given back", |server| in_use(server) == 0.0);
    assert!(server.stop().success());
}

/// A stream of v1 is not read while its responses are unread.
#[test]
fn v1_stream_is_not_read_while_its_responses_are_unread() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag("--max-unread-per-connection=1M")
        .start();
    let executed = || counter(&server, "nv_inference_request_success", &model_labels("echo"));
    let mut client = Client::open_without_window(server.grpc());
    let call = client.call(&call_headers(STREAM[1]));
    let request = message(&infer_v1_raw("echo", &[0; MIB / 4]));
    for _ in 0..2 {
        client.send(call, &request, false);
    }
    server.poll_until("half of the limit is unread", |_| executed() == 2.0);
    for _ in 0..12 {
        client.send(call, &request, false);
    }
    std::thread::sleep(Duration::from_millis(300));
    // One may be waited for already.
    assert!(executed() <= 3.0, "{} requests were read", executed());
    client.send(call, &[], true);
    client.permit(call, 16 * MIB as u32);
    assert!(client.ends(&[call])[&call] > MIB, "the stream is read on");
    assert!(server.stop().success());
}
