//! Cancellation of executing requests, on every endpoint.
//!
//! The model waits until it is cancelled, at most ten seconds, and logs that it waits. Only a
//! request whose cancellation the model has seen counts as CANCELED.

use super::{DEADLINE_EXCEEDED, cancelled, count, pending, server};
use std::time::Duration;
use trtserver_tests::grpc::{INFER, STREAM};
use trtserver_tests::http2::{Client, End, call_headers, message};
use trtserver_tests::soak::Random;
use trtserver_tests::{
    ENDPOINTS, Endpoint, GRPC_ENDPOINTS, InferenceClient, Running, Server, inference, probe,
};

/// How often the model has logged that it waits.
fn waits(server: &Running) -> usize {
    server.log().matches("the probe waits to be cancelled").count()
}

fn canceled_failures(server: &Running) -> usize {
    count(server, r#"nv_inference_request_failure{model="stuck",reason="CANCELED",version="1"}"#)
}

/// Sends a request, waits until it is executed, and cancels it with `leave`.
#[track_caller]
fn cancels(
    server: &Running,
    what: &str,
    send: impl Fn() -> InferenceClient,
    leave: impl Fn(InferenceClient),
) {
    let (waited, (queued, executing)) = (waits(server), cancelled(server));
    let client = send();
    server.poll_until(what, |server| waits(server) > waited);
    leave(client);
    server.poll_until(what, |server| cancelled(server) == (queued, executing + 1));
    // The instance is idle again.
    assert_eq!(server.infer("stuck", r#""until_cancelled":false"#).status, 200, "{what}");
}

#[test]
fn disconnect_cancels_executing_request() {
    let server = server();
    for endpoint in ENDPOINTS {
        let send = || InferenceClient::send(&server, endpoint, "stuck", [1.0, 2.0]);
        cancels(&server, &format!("{endpoint:?} closed"), send, drop);
    }
    assert_eq!(canceled_failures(&server), ENDPOINTS.len());
    assert!(server.stop().success());
}

/// The `cancel` entry reaches backends that do not poll for cancellation, local and isolated,
/// before and after `execute` returns. Without it this one would fail after ten seconds with
/// another code.
#[test]
fn cancel_entry_is_called_local_and_isolated() {
    let models = [("local", "none"), ("isolated", "process")];
    let mut server = Server::new();
    for (model, isolation) in models {
        let parameters = [("until_notified", "true"), ("isolation", isolation)];
        server = server.model(model, probe(model, &parameters));
    }
    let server = server.start();
    for (model, _) in models {
        let says = format!(r#"nv_inference_request_failure{{model="{model}",reason="CANCELED","#);
        let failures = |server: &Running| count(server, &format!("{says}version=\"1\"}}"));
        for (n, more) in ["", r#""detach":true"#].into_iter().enumerate() {
            let waited = waits(&server);
            let mut client = server.connect();
            client.send(inference(model, more));
            server.poll_until(model, |server| waits(server) > waited);
            drop(client);
            server.poll_until(&format!("{model} {more}"), |server| failures(server) == n + 1);
        }
        assert_eq!(server.infer(model, r#""until_notified":false"#).status, 200, "{model}");
    }
    assert!(server.stop().success());
}

#[test]
fn rst_stream_cancels_one_call() {
    let server = server();
    for endpoint in GRPC_ENDPOINTS {
        let send = || InferenceClient::send(&server, endpoint, "stuck", [1.0, 2.0]);
        let what = format!("{endpoint:?} reset");
        let reset = |client: InferenceClient| {
            // The connection stays open until the reset has taken effect.
            let open = client.reset();
            server.poll_until(&what, |server| cancelled(server).1 == waits(server));
            drop(open);
        };
        cancels(&server, &what, send, reset);
    }
    assert_eq!(canceled_failures(&server), GRPC_ENDPOINTS.len());
    assert!(server.stop().success());
}

/// A client that has closed its sending side only still reads the response, and is cancelled once
/// it disconnects.
#[test]
fn half_closed_client_gets_its_response() {
    let slow = probe("slow", &[("delay_ms", "100")]);
    let server = Server::new().model("slow", slow).start();
    for endpoint in [Endpoint::HttpV1, Endpoint::HttpV2] {
        for version in ["HTTP/1.1", "HTTP/1.0"] {
            let bytes = endpoint.bytes("slow", [1.0, 2.0]);
            let head = bytes.iter().position(|b| *b == b'\r').unwrap_or(0);
            let line = String::from_utf8_lossy(&bytes[..head]).replace("HTTP/1.1", version);
            let mut connection = server.connect();
            connection.send([line.as_bytes(), &bytes[head..]].concat()).finish();
            let response = connection.response();
            assert_eq!(response.status, 200, "{endpoint:?} {version}");
            assert!(connection.is_closed(), "{endpoint:?} {version}");
        }
    }
    assert!(server.stop().success());
    let server = self::server();
    let leave = |client: InferenceClient| {
        let mut connection = client.into_connection();
        connection.finish();
        // One that waits gets an interim response, and is not cancelled.
        assert_eq!(connection.interim_status(), 100);
        assert_eq!(cancelled(&server), (0, waits(&server) - 1));
        drop(connection);
    };
    for endpoint in [Endpoint::HttpV1, Endpoint::HttpV2] {
        let send = || InferenceClient::send(&server, endpoint, "stuck", [1.0, 2.0]);
        cancels(&server, &format!("{endpoint:?} half-closed"), send, leave);
    }
    assert!(server.stop().success());
}

#[test]
fn disconnect_discards_pipelined_requests() {
    let server = server();
    for endpoint in [Endpoint::HttpV1, Endpoint::HttpV2] {
        let send = || InferenceClient::send_many(&server, endpoint, "stuck", 3);
        cancels(&server, &format!("{endpoint:?} with more queued"), send, drop);
    }
    // The later requests were never executed.
    assert_eq!(canceled_failures(&server), 2);
    assert!(server.stop().success());
}

/// The end of file is behind requests that arrived one by one while the first one is executed.
#[test]
fn disconnect_is_seen_behind_later_requests() {
    let server = server();
    for endpoint in [Endpoint::HttpV1, Endpoint::HttpV2] {
        let send = || InferenceClient::send(&server, endpoint, "stuck", [1.0, 2.0]);
        let leave = |client: InferenceClient| {
            let mut connection = client.into_connection();
            for _ in 0..2 {
                connection.send(endpoint.bytes("stuck", [1.0, 2.0]));
                std::thread::sleep(Duration::from_millis(50));
            }
            drop(connection);
        };
        cancels(&server, &format!("{endpoint:?} with later requests"), send, leave);
    }
    assert!(server.stop().success());
}

#[test]
fn disconnect_cancels_on_reused_connection() {
    let server = server();
    for endpoint in [Endpoint::HttpV1, Endpoint::HttpV2] {
        let what = format!("{endpoint:?} for the second time");
        let mut connection = server.connect();
        let first = connection.send(endpoint.bytes("echo", [1.0, 2.0])).response();
        assert_eq!(first.status, 200, "{what}");
        let (waited, executing) = (waits(&server), cancelled(&server).1);
        connection.send(endpoint.bytes("stuck", [1.0, 2.0]));
        server.poll_until(&what, |server| waits(server) > waited);
        drop(connection);
        server.poll_until(&what, |server| cancelled(server).1 > executing);
    }
    assert!(server.stop().success());
}

#[test]
fn disconnect_cancels_all_requests_of_a_stream() {
    let server = server();
    for endpoint in [Endpoint::StreamV1, Endpoint::StreamV2] {
        let (waited, failures) = (waits(&server), canceled_failures(&server));
        let client = InferenceClient::send_many(&server, endpoint, "stuck", 5);
        let what = format!("five of {endpoint:?}");
        server.poll_until(&what, |server| waits(server) > waited && pending(server) == 4);
        drop(client);
        server.poll_until(&what, |server| canceled_failures(server) == failures + 5);
        assert_eq!(server.infer("stuck", r#""until_cancelled":false"#).status, 200, "{what}");
    }
    assert_eq!(cancelled(&server), (8, 2));
    assert!(server.stop().success());
}

#[test]
fn grpc_deadline_cancels_executing_request() {
    let server = server();
    for endpoint in GRPC_ENDPOINTS {
        let failures = canceled_failures(&server);
        let client = InferenceClient::send_with_timeout(&server, endpoint, "stuck", "100m");
        assert_eq!(client.status(), DEADLINE_EXCEEDED, "{endpoint:?}");
        server.poll_until("its end", |server| canceled_failures(server) > failures);
        assert_eq!(server.infer("stuck", r#""until_cancelled":false"#).status, 200, "{endpoint:?}");
    }
    let (queued, executing) = cancelled(&server);
    assert_eq!(queued + executing, GRPC_ENDPOINTS.len());
    assert!(server.stop().success());
}

#[test]
fn grpc_timeout_values() {
    let server = server();
    for endpoint in GRPC_ENDPOINTS {
        for timeout in ["0n", "1n", "0H", "1u", "1m"] {
            let client = InferenceClient::send_with_timeout(&server, endpoint, "stuck", timeout);
            assert_eq!(client.status(), DEADLINE_EXCEEDED, "{endpoint:?} {timeout}");
        }
        for timeout in ["99999999H", "99999999M", "99999999S", "99999999m"] {
            let client = InferenceClient::send_with_timeout(&server, endpoint, "echo", timeout);
            assert!(client.is_echoed(), "{endpoint:?} {timeout}");
        }
        for nonsense in ["999999999999999999999S", "soon", "S", "-1m", "1", "1.5S", "1 S", "1x"] {
            let client = InferenceClient::send_with_timeout(&server, endpoint, "echo", nonsense);
            assert!(client.is_echoed(), "{endpoint:?} {nonsense}");
        }
    }
    server.poll_until("nothing is left", |server| pending(server) == 0);
    assert!(server.stop().success());
}

#[test]
fn backend_sees_the_deadline() {
    let model = probe("hasty", &[("needs_deadline", "true")]);
    let server = Server::new().model("hasty", model).start();
    for endpoint in GRPC_ENDPOINTS {
        assert!(
            InferenceClient::send_with_timeout(&server, endpoint, "hasty", "1H").is_echoed(),
            "{endpoint:?}"
        );
        assert!(
            !InferenceClient::send(&server, endpoint, "hasty", [1.0, 2.0]).is_echoed(),
            "{endpoint:?}"
        );
    }
}

#[test]
fn disconnect_in_mid_request() {
    let server = server();
    for round in 0..20 {
        for endpoint in ENDPOINTS {
            let client = InferenceClient::send_half(&server, endpoint, "stuck");
            if round % 2 == 0 {
                drop(client);
            } else {
                drop(client.reset());
            }
        }
    }
    assert_eq!((waits(&server), pending(&server)), (0, 0));
    assert_eq!(server.infer("stuck", r#""until_cancelled":false"#).status, 200);
    // A request still in flight would delay this.
    assert!(server.stop().success());
}

#[test]
fn deadline_ends_incomplete_call() {
    let server = server();
    for path in INFER {
        let mut client = Client::open(server.grpc());
        let headers = [call_headers(path), vec![("grpc-timeout", "20m")]].concat();
        let call = client.call(&headers);
        client.send(call, &[0, 0], false);
        assert_eq!(client.end(call).status, DEADLINE_EXCEEDED, "{path}");
    }
}

#[test]
fn cancelled_requests_do_not_affect_others() {
    let model = probe("busy", &[("delay_ms", "1")]);
    let server = Server::new().model("busy", model).start();
    let mut random = Random::new(7);
    let mut staying = Vec::new();
    let mut leaving: Vec<(u32, InferenceClient)> = Vec::new();
    for i in 0..200 {
        let endpoint = ENDPOINTS[i as usize / 2 % ENDPOINTS.len()];
        let client = InferenceClient::send(&server, endpoint, "busy", [i as f32, i as f32 + 0.5]);
        if i % 2 == 0 {
            staying.push((i, endpoint, client));
        } else {
            leaving.push((i + random.below(20) as u32, client));
        }
        // Clients that leave at this step: half of them close the connection, half reset only the
        // call, where possible.
        for (_, client) in leaving.extract_if(.., |(when, _)| *when <= i) {
            if random.below(2) == 0 { drop(client) } else { drop(client.reset()) }
        }
    }
    drop(leaving);
    for (i, endpoint, client) in staying {
        assert!(client.is_echoed(), "number {i}, {endpoint:?}");
    }
    let pending = r#"nv_inference_pending_request_count{model="busy",version="1"}"#;
    server.poll_until("nothing is left", |server| server.metrics(pending) == Some(0.0));
    assert!(server.stop().success());
}

/// A client that sends and resets as many requests at once as streams are allowed is not treated as
/// an attacker: the other calls of its connection continue.
#[test]
fn mass_rst_stream_keeps_the_connection() {
    let server = server();
    for path in INFER.into_iter().chain(STREAM) {
        let mut client = Client::open(server.grpc());
        let headers = call_headers(path);
        client.in_one_write(|client| {
            for _ in 0..500 {
                let call = client.call(&headers);
                client.send(call, &message(b""), false);
                client.reset(call);
            }
        });
        let call = client.call(&headers);
        client.send(call, &message(b""), true);
        assert_eq!(client.end(call).end, End::Responded, "{path}");
    }
    assert_eq!(pending(&server), 0);
    assert!(server.stop().success());
}
