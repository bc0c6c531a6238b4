//! Raw bytes through hyper: the state of a connection after a refused request.

use super::*;
use crate::testing;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trtserver_base::clock::now_ns;

const HEADER: &str = "NV-InferRequest:batch_size: 1 input { name: \"INPUT0\" } input { name: \"INPUT1\" } output { \
                      name: \"OUTPUT0\" }";

/// Everything that a server sends in response to `sent`.
async fn exchange(sent: Vec<u8>) -> String {
    let ctx = testing::context("--http-max-input-size=100000");
    let (mut client, server) = tokio::io::duplex(4096);
    let service = service_fn(move |request: Request<Incoming>| {
        let ctx = Arc::clone(&ctx);
        async move { Ok::<_, Infallible>(handle_request(&ctx, request, now_ns()).await) }
    });
    // All requests are sent at once, and the client keeps its write half open.
    let mut builder = hyper::server::conn::http1::Builder::new();
    let connection = builder.half_close(true).serve_connection(TokioIo::new(server), service);
    // As in a listener, the connection is served by another task.
    let serving = tokio::spawn(connection);
    let (mut reader, mut writer) = tokio::io::split(&mut client);
    let mut got = Vec::new();
    let write = async {
        let _ = writer.write_all(&sent).await;
        let _ = writer.shutdown().await;
    };
    let read = async {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = reader.read(&mut buffer).await {
            got.extend_from_slice(&buffer[..n]);
        }
    };
    let limit = std::time::Duration::from_secs(5);
    tokio::time::timeout(limit, async { tokio::join!(write, read) }).await.unwrap();
    let _ = serving.await;
    String::from_utf8_lossy(&got).into_owned()
}

fn post(length: usize, body: usize) -> Vec<u8> {
    let head = format!(
        "POST /api/infer/simple HTTP/1.1\r\nHost: x\r\n{HEADER}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.into_bytes(), vec![0; body]].concat()
}

fn chunked(sizes: &[usize]) -> Vec<u8> {
    let head = format!(
        "POST /api/infer/simple HTTP/1.1\r\nHost: x\r\n{HEADER}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut out = head.into_bytes();
    for n in sizes {
        out.extend_from_slice(format!("{n:x}\r\n").as_bytes());
        out.extend(vec![0; *n]);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

#[tokio::test]
async fn refused_body_keeps_the_connection() {
    let good = post(128, 128);
    for (bad, why) in [
        (post(127, 127), "missing expecting 1 bytes"),
        (post(90_000, 90_000), "unexpected additional input data"),
        (chunked(&[64, 63]), "missing expecting 1 bytes"),
        (chunked(&[64, 50_000, 5]), "unexpected additional input data"),
    ] {
        let got = exchange([bad, good.clone()].concat()).await;
        assert_eq!(got.matches("HTTP/1.1 400").count(), 1, "{why}: {got}");
        assert_eq!(got.matches("HTTP/1.1 200").count(), 1, "{why}: {got}");
        assert!(got.contains(why), "{got}");
    }
    let got = exchange([chunked(&[1, 127]), good.clone(), good].concat()).await;
    assert_eq!(got.matches("HTTP/1.1 200").count(), 3);
    assert!(got.contains("content-length: 1"), "{got}");
}

#[tokio::test]
async fn body_beyond_the_limit_gets_a_response_and_closes_the_connection() {
    let got = exchange(post(1 << 40, 3000)).await;
    assert!(got.starts_with("HTTP/1.1 400"), "{got}");
    assert!(got.contains("unexpected additional input data"), "{got}");
}

#[tokio::test]
async fn expect_continue_gets_an_immediate_response() {
    let mut request =
        b"POST /api/infer/nothing HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n".to_vec();
    request.extend_from_slice(b"Content-Length: 100\r\n\r\n");
    let got = exchange(request).await;
    assert!(got.starts_with("HTTP/1.1 400"), "{got}");
}
