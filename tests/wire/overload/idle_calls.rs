//! Calls that are opened and send nothing, and heads that do not end: what the server keeps for
//! them is limited, and others are served.

use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderName, HeaderValue, Request};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use trtserver_tests::grpc::{INFER, STREAM, infer_v1, infer_v2};
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::{Running, Server, probe};

const LIVE: &str = "/inference.GRPCInferenceService/ServerLive";
const STREAM_2018: &str = "/nvidia.inferenceserver.GRPCService/InferStream";
const IN_USE: &str = "trtserver_request_memory_bytes";
const TIMEOUT: Duration = Duration::from_secs(60);
const RESOURCE_EXHAUSTED: &str = "8";

/// A client that opens calls and sends nothing.
struct IdleClient {
    runtime: Runtime,
    sender: SendRequest<bytes::Bytes>,
    open: Vec<(SendStream<bytes::Bytes>, Option<RecvStream>, Option<ResponseFuture>)>,
}

impl IdleClient {
    #[track_caller]
    fn connect(address: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap_or_else(|e| panic!("no runtime: {e}"));
        let connect = async {
            let stream = tokio::net::TcpStream::connect(address).await?;
            let (sender, connection) =
                h2::client::handshake(stream).await.map_err(std::io::Error::other)?;
            tokio::spawn(connection);
            Ok(sender)
        };
        let sender = runtime.block_on(connect);
        let sender = sender.unwrap_or_else(|e: std::io::Error| panic!("cannot connect: {e}"));
        Self { runtime, sender, open: Vec::new() }
    }

    /// Opens `count` calls with so many further headers. Returns the statuses and texts of those
    /// that were refused.
    #[track_caller]
    fn open(&mut self, path: &str, count: usize, headers: usize) -> Vec<(String, String)> {
        let mut request = Request::post(format!("http://test{path}"))
            .header("te", "trailers")
            .header("content-type", "application/grpc");
        for i in 0..headers {
            let name = HeaderName::try_from(format!("x{i}"));
            let name = name.unwrap_or_else(|e| panic!("not a header: {e}"));
            request = request.header(name, HeaderValue::from_static(""));
        }
        let request = request.body(()).unwrap_or_else(|e| panic!("not a request: {e}"));
        self.runtime.block_on(async {
            let mut waiting = Vec::new();
            for _ in 0..count {
                waiting.push(send(&self.sender, request.clone(), false).await);
            }
            // The server does not respond to unary calls that it has accepted; what it refuses, it
            // refuses before it responds to a later call.
            let mut fence = Request::post(format!("http://test{LIVE}"));
            if let Some(headers) = fence.headers_mut() {
                headers.extend(request.headers().clone());
            }
            let fence = fence.body(()).unwrap_or_else(|e| panic!("not a request: {e}"));
            let (response, _) = send(&self.sender, fence, true).await;
            let responded = tokio::time::timeout(TIMEOUT, response).await;
            assert!(matches!(responded, Ok(Ok(_))), "no response after {count} calls");
            let end = tokio::time::Instant::now() + Duration::from_millis(300);
            let mut refused = Vec::new();
            for (mut response, send) in waiting {
                let Ok(arrived) = tokio::time::timeout_at(end, &mut response).await else {
                    self.open.push((send, None, Some(response)));
                    continue;
                };
                let (head, body) = arrived.unwrap_or_else(|e| panic!("reset: {e}")).into_parts();
                let text = |name| head.headers.get(name).and_then(|v| v.to_str().ok());
                match text("grpc-status") {
                    None => self.open.push((send, Some(body), None)),
                    Some(status) => {
                        let message = text("grpc-message").unwrap_or_default();
                        refused.push((status.to_owned(), message.to_owned()));
                    }
                }
            }
            refused
        })
    }
}

async fn send(
    sender: &SendRequest<bytes::Bytes>,
    request: Request<()>,
    last: bool,
) -> (ResponseFuture, SendStream<bytes::Bytes>) {
    let ready = sender.clone().ready().await;
    let mut sender = ready.unwrap_or_else(|e| panic!("the connection ended: {e}"));
    sender.send_request(request, last).unwrap_or_else(|e| panic!("cannot call: {e}"))
}

fn start(flags: &[&str]) -> Running {
    let server = Server::new().model("echo", probe("echo", &[]));
    flags.iter().fold(server, |server, flag| server.flag(*flag)).start()
}

/// One client of each kind is served on a connection of its own.
#[track_caller]
fn assert_serves(server: &Running) {
    assert_eq!(server.infer("echo", "").status, 200);
    let requests = [infer_v2("echo", [1.0, 2.0]), infer_v1("echo", [1.0, 2.0])];
    for (path, request) in INFER.iter().chain(&STREAM).zip(requests.iter().cycle()) {
        let mut client = Client::open(server.grpc());
        let call = client.call(&call_headers(path));
        client.send(call, &message(request), true);
        let ended = client.end(call);
        assert_eq!(ended.status, Some(0), "{path}: {ended:?}");
        assert!(ended.body.len() > 8, "{path}: {ended:?}");
    }
}

#[test]
fn idle_calls_draw_on_the_memory_budget() {
    let server = start(&["--max-request-memory=32M"]);
    assert_serves(&server);
    // A quarter of the budget, and what connections have in any case.
    let most = f64::from(8 << 20) + 8.0 * f64::from(144 << 10);
    for (path, headers) in [
        (STREAM[0], 0),
        (STREAM[1], 0),
        (STREAM_2018, 0),
        (INFER[0], 0),
        (LIVE, 0),
        (STREAM[0], 200),
        (INFER[1], 200),
    ] {
        let before = server.resident_kib();
        let refusals = r#"trtserver_request_refusals_total{reason="memory_budget"}"#;
        let counted = server.metrics(refusals).unwrap_or_default();
        let mut clients: Vec<_> = (0..4).map(|_| IdleClient::connect(server.grpc())).collect();
        let refused: Vec<_> =
            clients.iter_mut().flat_map(|client| client.open(path, 900, headers)).collect();
        let open: usize = clients.iter().map(|client| client.open.len()).sum();
        assert!(refused.len() > 1000, "{path}: {} of 3600 were refused", refused.len());
        assert_eq!(open + refused.len(), 3600);
        for (status, text) in &refused {
            assert_eq!(status, RESOURCE_EXHAUSTED, "{path}: {text}");
            assert!(text.contains("--max-request-memory"), "{path}: {text}");
        }
        let in_use = server.metrics(IN_USE).unwrap_or_default();
        assert!((most / 2.0..most).contains(&in_use), "{path}: {in_use} bytes");
        assert!(server.metrics(refusals) >= Some(counted + refused.len() as f64));
        // The heads of all calls of a connection may arrive in one read, before the first is
        // refused.
        let refused = server.resident_kib().saturating_sub(before);
        assert!(refused < 160 << 10, "{path}: {open} calls hold {refused} KiB");
        server.poll_until(&format!("{path}: {open} calls hold little"), |server| {
            server.resident_kib() < before + (24 << 10)
        });
        assert_serves(&server);
        drop(clients);
        server.poll_until("all memory is given back", |server| server.metrics(IN_USE) == Some(0.0));
    }
    assert!(server.stop().success());
}

#[test]
fn control_calls_are_served_beside_idle_calls_of_their_connection() {
    let server = start(&["--max-request-memory=8M"]);
    let mut client = IdleClient::connect(server.grpc());
    assert!(!client.open(STREAM[0], 900, 0).is_empty());
    let accepted = client.open.len();
    assert!(client.open(LIVE, 8, 0).is_empty());
    assert_eq!(client.open.len(), accepted + 8);
    assert!(!client.open(LIVE, 20, 0).is_empty());
}

#[test]
fn open_calls_are_limited_over_all_connections() {
    let server = start(&["--max-open-calls=100"]);
    let mut clients: Vec<_> = (0..3).map(|_| IdleClient::connect(server.grpc())).collect();
    let refused: Vec<_> = clients.iter_mut().map(|client| client.open(INFER[0], 150, 0)).collect();
    // Each connection has 16 calls in any case.
    assert_eq!(refused.iter().map(Vec::len).collect::<Vec<_>>(), [50, 134, 134]);
    for (status, text) in refused.iter().flatten() {
        assert!(
            status == RESOURCE_EXHAUSTED && text.contains("--max-open-calls"),
            "{status} {text}"
        );
    }
    let counted = server.metrics(r#"trtserver_request_refusals_total{reason="open_calls"}"#);
    assert_eq!(counted, Some(318.0));
    assert_serves(&server);
    drop(clients);
    server.poll_until("all calls have ended", |server| server.metrics(IN_USE) == Some(0.0));
    assert_eq!(IdleClient::connect(server.grpc()).open(INFER[0], 100, 0), []);
}

#[test]
fn stream_without_first_message_ends() {
    let server = start(&["--first-message-timeout-secs=1"]);
    let mut client = Client::open(server.grpc());
    let begun = client.call(&call_headers(STREAM[0]));
    client.send(begun, &message(&infer_v2("echo", [1.0, 2.0])), false);
    client.wait_for_data(begun, 8);
    for path in [STREAM[0], STREAM[1], STREAM_2018] {
        // Also one whose client permits no response.
        for open in [Client::open, Client::open_without_window] {
            let mut client = open(server.grpc());
            let begin = Instant::now();
            let call = client.call(&call_headers(path));
            let ended = client.end(call);
            // DEADLINE_EXCEEDED
            assert_eq!(ended.status, Some(4), "{path}: {ended:?}");
            let after = begin.elapsed();
            let expected = Duration::from_millis(900)..Duration::from_secs(10);
            assert!(expected.contains(&after), "{path}: {after:?}");
        }
    }
    // One that has begun may pause.
    client.send(begun, &message(&infer_v2("echo", [3.0, 4.0])), true);
    assert!(client.end(begun).body.len() > 8);
}

#[test]
fn unfinished_heads_draw_on_the_memory_budget() {
    let server = start(&["--max-request-memory=8M"]);
    assert_eq!(server.infer("echo", "").status, 200);
    let before = server.resident_kib();
    let head = [b"GET /v2 HTTP/1.1\r\nHost: x\r\nx-long: ".as_slice(), &[b'a'; 300 << 10]].concat();
    let heads: Vec<TcpStream> = (0..100)
        .map(|_| {
            let open = || {
                let mut stream = TcpStream::connect(server.http())?;
                stream.set_read_timeout(Some(Duration::from_millis(20)))?;
                // The server may close the connection meanwhile.
                let _ = stream.write_all(&head);
                Ok(stream)
            };
            open().unwrap_or_else(|e: std::io::Error| panic!("cannot connect: {e}"))
        })
        .collect();
    let refusals = r#"trtserver_request_refusals_total{reason="memory_budget"}"#;
    server.poll_until("most heads are refused", |server| server.metrics(refusals) > Some(50.0));
    let in_use = server.metrics(IN_USE).unwrap_or_default();
    assert!((1.0..8e6).contains(&in_use), "{in_use} bytes");
    let closed = |mut stream: &TcpStream| match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
    };
    assert!(heads.iter().filter(|stream| closed(stream)).count() > 50);
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 32 << 10, "unfinished heads hold {grown} KiB");
    assert_eq!(server.infer("echo", "").status, 200);
    drop(heads);
    server.poll_until("all memory is given back", |server| server.metrics(IN_USE) == Some(0.0));
}
