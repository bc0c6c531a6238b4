//! Cancellation of queued requests, while another one is executed.

use super::{DEADLINE_EXCEEDED, cancelled, pending, server};
use trtserver_tests::{ENDPOINTS, Endpoint, GRPC_ENDPOINTS, InferenceClient, Running};

/// A server whose only instance executes a request until its client disconnects.
fn held() -> (Running, InferenceClient) {
    let server = server();
    let holds = InferenceClient::send(&server, Endpoint::HttpV2, "stuck", [1.0, 2.0]);
    server.wait_for_log("the probe waits to be cancelled");
    (server, holds)
}

/// Checks that the first request was executed all the time, and is cancelled by its disconnect.
#[track_caller]
fn release(server: Running, holds: InferenceClient, left: usize) {
    assert_eq!(cancelled(&server), (left, 0));
    drop(holds);
    server.poll_until("the last one ends", |server| cancelled(server) == (left, 1));
    assert_eq!(server.infer("stuck", r#""until_cancelled":false"#).status, 200);
    assert!(server.stop().success());
}

fn wait_for(server: &Running, waiting: usize) {
    let what = format!("{waiting} requests wait");
    server.poll_until(&what, |server| pending(server) == waiting);
}

#[test]
fn disconnect_removes_queued_request() {
    let (server, holds) = held();
    let mut clients = Vec::new();
    for endpoint in ENDPOINTS {
        clients.push(InferenceClient::send(&server, endpoint, "stuck", [1.0, 2.0]));
        wait_for(&server, clients.len());
    }
    // From the middle, the front and the end.
    for index in [2, 0, 3, 1, 1, 0] {
        drop(clients.remove(index));
        wait_for(&server, clients.len());
    }
    release(server, holds, ENDPOINTS.len());
}

#[test]
fn rst_stream_removes_queued_request() {
    let (server, holds) = held();
    let clients = GRPC_ENDPOINTS
        .map(|endpoint| InferenceClient::send(&server, endpoint, "stuck", [1.0, 2.0]));
    wait_for(&server, clients.len());
    let lines = clients.map(InferenceClient::reset);
    wait_for(&server, 0);
    drop(lines);
    release(server, holds, GRPC_ENDPOINTS.len());
}

#[test]
fn deadline_removes_queued_request() {
    let (server, holds) = held();
    let clients = GRPC_ENDPOINTS
        .map(|endpoint| InferenceClient::send_with_timeout(&server, endpoint, "stuck", "100m"));
    for (client, endpoint) in clients.into_iter().zip(GRPC_ENDPOINTS) {
        assert_eq!(client.status(), DEADLINE_EXCEEDED, "{endpoint:?}");
    }
    wait_for(&server, 0);
    release(server, holds, GRPC_ENDPOINTS.len());
}

#[test]
fn disconnect_removes_queued_requests_of_a_stream() {
    let (server, holds) = held();
    let streams = [Endpoint::StreamV1, Endpoint::StreamV2];
    let clients =
        streams.map(|endpoint| InferenceClient::send_many(&server, endpoint, "stuck", 100));
    wait_for(&server, 200);
    let [first, second] = clients;
    drop(first);
    wait_for(&server, 100);
    drop(second);
    wait_for(&server, 0);
    release(server, holds, 200);
}
