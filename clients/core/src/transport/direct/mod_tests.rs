//! Blocking clients and servers whose responses arrive in unusual ways.

use crate::v2::{InferRequest, Input};
use crate::{Protocol, Settings, blocking};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

fn request() -> InferRequest {
    InferRequest::new("m").input(Input::new("IN", "UINT8", [50_000], vec![7; 50_000]))
}

fn client(address: &str, protocol: Protocol) -> blocking::v2::BlockingClient {
    blocking::v2::BlockingClient::new(&Settings::new(address).protocol(protocol)).unwrap()
}

/// The path of a request; its body is skipped.
fn read_request(stream: &mut BufReader<TcpStream>) -> String {
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        match line.trim().to_ascii_lowercase().split_once(' ') {
            Some(("content-length:", number)) => length = number.parse().unwrap(),
            Some(("get" | "post", rest)) => path = rest.to_owned(),
            Some(_) => {}
            None => break,
        }
    }
    stream.read_exact(&mut vec![0; length]).unwrap();
    path
}

#[test]
fn interim_and_chunked_responses_are_read_in_any_pieces() {
    let body = br#"{"model_name":"m","outputs":[]}"#;
    let (first, second) = body.split_at(10);
    let mut response = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n".to_vec();
    response.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    for chunk in [first, second] {
        response.extend_from_slice(format!("{:X};x=y\r\n", chunk.len()).as_bytes());
        response.extend_from_slice(chunk);
        response.extend_from_slice(b"\r\n");
    }
    response.extend_from_slice(b"0\r\nchecksum: 1\r\n\r\n");
    let pieces = [1, 2, 3, 7, 1000];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        // One connection: a second one would wait for ever.
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        stream.get_ref().set_nodelay(true).unwrap();
        for size in pieces {
            read_request(&mut stream);
            response.chunks(size).for_each(|piece| stream.get_mut().write_all(piece).unwrap());
        }
    });
    let client = client(&address, Protocol::Http);
    for _ in pieces {
        assert_eq!(client.infer(&request()).unwrap().model, "m");
    }
}

#[test]
fn calls_of_two_threads_do_not_wait_for_each_other() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (slow_arrived, slow) = mpsc::channel();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let is_slow = read_request(&mut stream).contains("slow");
            held.push(stream);
            if is_slow {
                slow_arrived.send(()).unwrap();
                continue;
            }
            // The second request is answered first.
            for stream in held.iter_mut().rev() {
                let body = r#"{"model_name":"m","outputs":[]}"#;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.get_mut().write_all((head + body).as_bytes()).unwrap();
            }
        }
    });
    let client = client(&address, Protocol::Http);
    std::thread::scope(|scope| {
        let slow_call = scope.spawn(|| client.infer(&InferRequest::new("slow")));
        slow.recv().unwrap();
        client.infer(&InferRequest::new("quick")).unwrap();
        slow_call.join().unwrap().unwrap();
    });
}

#[test]
fn grpc_message_is_sent_within_the_windows_of_the_server() {
    let (sizes, received) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    listener.set_nonblocking(true).unwrap();
    blocking::background().unwrap().spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let service = service_fn(move |request: Request<Incoming>| {
            let sizes = sizes.clone();
            async move {
                let table = request.headers().len();
                let body = request.into_body().collect().await.unwrap().to_bytes();
                sizes.send((body.len(), table)).unwrap();
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
                let frames = [Frame::data(Bytes::from_static(&[0; 5])), Frame::trailers(trailers)];
                let frames = frames.map(Ok::<_, Infallible>);
                let body = StreamBody::new(tokio_stream::iter(frames));
                let response = Response::builder().header("content-type", "application/grpc");
                Ok::<_, Infallible>(response.body(body).unwrap())
            }
        });
        let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(1000)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    });
    let client = client(&address, Protocol::Grpc);
    // The settings of the server have arrived with the first response.
    for _ in 0..3 {
        client.infer(&request()).unwrap();
        let (size, fields) = received.recv().unwrap();
        assert!(size > 50_000, "{size}");
        // content-type, te, user-agent, grpc-timeout
        assert_eq!(fields, 4);
    }
}
