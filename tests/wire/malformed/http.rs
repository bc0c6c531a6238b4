//! Malformed HTTP, and requests whose body is late, cut short or too large.

use super::v2::{input, inputs};
use super::{Malformed, SERVER, assert_all_refused, assert_still_serves};
use trtserver_tests::http1::Connection;
use trtserver_tests::{Server, inference, probe};

/// Bytes that are not an HTTP request.
fn raw(what: &'static str, bytes: impl Into<Vec<u8>>, codes: &'static [u16]) -> Malformed {
    Malformed { what, bytes: bytes.into(), codes, says: String::new() }
}

/// Requests that are malformed HTTP.
pub fn requests() -> Vec<Malformed> {
    let post = "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\n";
    let long = "x".repeat(1 << 20);
    vec![
        raw("no HTTP", "hello\r\n\r\n", &[400]),
        raw(
            "a TLS hello",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".as_slice(),
            &[400],
        ),
        raw("no path", "GET\r\n\r\n", &[400]),
        raw("no Host", "GET /v2 HTTP/1.1\r\n\r\n", &[400]),
        raw("two Hosts", "GET /v2 HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", &[400]),
        raw("a Host with a path", "GET /v2 HTTP/1.1\r\nHost: x/y\r\n\r\n", &[400]),
        raw(
            "a transfer coding before chunked",
            format!("{post}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"),
            &[501],
        ),
        raw(
            "a transfer coding without chunked",
            format!("{post}Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{{}}"),
            &[400],
        ),
        raw("a version that does not exist", "GET /v2 HTTP/9.9\r\n\r\n", &[400, 505]),
        raw("a header without a colon", "GET /v2 HTTP/1.1\r\nHost x\r\n\r\n", &[400]),
        raw("a NUL in a header", "GET /v2 HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", &[400]),
        raw(
            "a length that is not a number",
            format!("{post}Content-Length: ten\r\n\r\n{{}}"),
            &[400],
        ),
        raw("a negative length", format!("{post}Content-Length: -1\r\n\r\n{{}}"), &[400]),
        raw(
            "a length beyond 64 bits",
            format!("{post}Content-Length: 99999999999999999999\r\n\r\n{{}}"),
            &[400, 413],
        ),
        raw(
            "two lengths",
            format!("{post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"),
            &[400],
        ),
        raw(
            "a chunk size that is not a number",
            format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"),
            &[400, 500],
        ),
        raw(
            "a chunk size beyond 64 bits",
            format!(
                "{post}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{{}}\r\n0\r\n\r\n"
            ),
            &[400, 500],
        ),
        raw(
            "a chunk without its end",
            format!("{post}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}x\r\n0\r\n\r\n"),
            &[400, 500],
        ),
        raw(
            "a path of a megabyte",
            format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
            &[400, 404, 414, 431],
        ),
        raw(
            "a header of a megabyte",
            format!("{post}X: {long}\r\nContent-Length: 2\r\n\r\n{{}}"),
            &[400, 431, 500],
        ),
        raw(
            "a v1 request header of a megabyte",
            format!(
                "POST /api/infer/echo HTTP/1.1\r\nHost: x\r\nNV-InferRequest: batch_size: 1 {long}\r\nContent-Length: 8\r\n\r\n12345678"
            ),
            &[400, 431],
        ),
        raw(
            "ten thousand headers",
            format!("{post}{}Content-Length: 2\r\n\r\n{{}}", "X: y\r\n".repeat(10_000)),
            &[400, 431],
        ),
    ]
}

#[test]
fn malformed_http_is_refused() {
    assert_all_refused(&SERVER, &requests(), true);
}

/// Also where the HTTP library refuses a head by itself.
#[test]
fn refused_heads_have_a_text() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let get = "GET /v2 HTTP/1.1\r\nHost: x\r\n";
    let many = "X: y\r\n".repeat(101);
    let long = "x".repeat(70_000);
    for (head, status, text) in [
        (format!("{get}{many}\r\n"), 431, "the request has more than 100 headers"),
        (format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"), 414, "more than 65534 bytes"),
        (format!("{get}X\r\n\r\n"), 400, "the head of the request is malformed"),
        (
            format!("{get}Transfer-Encoding: identity\r\n\r\n"),
            400,
            "no Transfer-Encoding but chunked",
        ),
        (
            format!("{get}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
            501,
            "header 'Transfer-Encoding' is 'gzip, chunked': this server reads 'chunked' alone",
        ),
        ("GET /v2 HTTP/1.1\r\n\r\n".to_owned(), 400, "the request has no header 'Host'"),
        (format!("{get}Host: y\r\n\r\n"), 400, "the request has 2 headers 'Host'"),
    ] {
        for address in [server.http(), server.metrics_address()] {
            // Alone, and behind a request on the same connection.
            for before in [false, true] {
                let mut connection = Connection::open(address);
                if before {
                    connection.send("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n");
                    assert_eq!(connection.response().status, 200);
                }
                let response = connection.send(&head).response();
                assert_eq!(response.status, status, "{address}: {}", response.text());
                assert!(response.error_text().contains(text), "{address}: {}", response.text());
                assert_eq!(response.header("connection"), Some("close"), "{address} {text}");
            }
        }
    }
    assert!(server.stop().success());
}

/// A response whose bytes look like a refusal of the HTTP library is sent as it is.
#[test]
fn responses_that_look_like_refusals_are_not_changed() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let line = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".repeat(100_000);
    let bytes = &line.as_bytes()[..line.len() / 4 * 4];
    let json = format!(
        r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,{}],"parameters":{{"binary_data_size":{}}}}}],"outputs":[{{"name":"OUTPUT0","parameters":{{"binary_data":true}}}}]}}"#,
        bytes.len() / 4,
        bytes.len()
    );
    let length = json.len().to_string();
    let headers = [("Inference-Header-Content-Length", &*length)];
    let body = [json.as_bytes(), bytes].concat();
    let response = server.post("/v2/models/echo/infer", &headers, &body);
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(response.body.ends_with(bytes));
    assert!(server.stop().success());
}

#[test]
fn missing_body_blocks_no_other_request() {
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let mut connection = SERVER.connect();
            connection.send(
                "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
            );
            connection
        })
        .collect();
    assert_still_serves(&SERVER);
    drop(waiting);
    assert_still_serves(&SERVER);
}

#[test]
fn truncated_body_is_refused() {
    let mut connection = SERVER.connect();
    connection
        .send("POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{");
    connection.finish();
    assert!(connection.try_response().is_none_or(|response| response.status >= 400));
    assert_still_serves(&SERVER);
}

#[test]
fn truncated_head_is_refused() {
    for part in ["", "G", "GET /v2", "GET /v2 HTTP/1.1\r\n", "GET /v2 HTTP/1.1\r\nHost: "] {
        let mut connection = SERVER.connect();
        connection.send(part).finish();
        assert!(
            connection.try_response().is_none_or(|response| response.status == 400),
            "{part:?}"
        );
    }
    assert_still_serves(&SERVER);
}

#[test]
fn body_above_limit_is_refused() {
    let server =
        Server::new().model("echo", probe("echo", &[])).flag("--http-max-input-size=1000").start();
    let json = inputs(&[input("INPUT0", "FP32", "[1,2]", &format!("[1,2{}]", " ".repeat(2000)))]);
    let response = server.post("/v2/models/echo/infer", &[], &json);
    assert_eq!(response.status, 400, "{}", response.text());
    assert!(response.error_text().contains("--http-max-input-size"), "{}", response.text());
    assert_still_serves(&server);
}

#[test]
fn decompression_is_bounded_by_the_limit() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    assert_still_serves(&server);
    let before = server.resident_kib();
    // 100 MiB of blanks compress to 100 KB.
    let bomb = gzip_of_blanks(100 << 20);
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    for _ in 0..5 {
        let encoding = [("Content-Encoding", "gzip")];
        let response = server.post("/v2/models/echo/infer", &encoding, &bomb);
        assert_eq!(response.status, 400, "{}", response.text());
        assert!(response.error_text().contains("--http-max-input-size"), "{}", response.text());
    }
    assert_still_serves(&server);
    let after = server.resident_kib();
    assert!(after < before + (160 << 10), "resident memory grew from {before} KiB to {after} KiB");
}

/// This many blanks, compressed by gzip.
fn gzip_of_blanks(count: usize) -> Vec<u8> {
    let script = format!("head -c {count} /dev/zero | tr '\\0' ' ' | gzip -c");
    let done = std::process::Command::new("sh").args(["-c", &script]).output();
    match done {
        Ok(done) if done.status.success() => done.stdout,
        other => panic!("gzip: {other:?}"),
    }
}

#[test]
fn disconnect_cancels_request() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    // The model waits for its cancellation, at most ten seconds.
    server.connect().send(inference("echo", r#""until_cancelled":true"#));
    let canceled = r#"nv_inference_request_failure{model="echo",reason="CANCELED",version="1"}"#;
    assert_still_serves(&server);
    server.poll_until("it is cancelled", |server| server.metrics(canceled) >= Some(1.0));
}

#[test]
fn hundreds_of_connections() {
    let connections: Vec<_> = (0..400)
        .map(|_| {
            let mut connection = SERVER.connect();
            connection.send(inference("echo", ""));
            connection
        })
        .collect();
    for mut connection in connections {
        assert_eq!(connection.response().status, 200);
    }
}

#[test]
fn disconnect_during_execution() {
    for _ in 0..3 {
        SERVER.connect().send(inference("slow", ""));
    }
    assert_still_serves(&SERVER);
    let response = SERVER.infer("slow", "");
    assert_eq!(response.status, 200, "{}", response.text());
}
