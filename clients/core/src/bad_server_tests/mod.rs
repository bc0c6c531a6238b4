//! Servers that misbehave: every call ends with an error that names the request, none hangs or
//! panics.
//!
//! HTTP servers are scripted byte by byte; gRPC servers respond with frames that no honest server
//! sends.

mod connections;
mod grpc;
mod http;

use crate::v1::ContextOptions;
use crate::v2::{InferRequest, InferRequestedOutput, Input};
use crate::{Bytes, Error, Kind, Protocol, Settings, blocking, v1, v2};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Long enough never to pass, except where a server does not respond at all.
const LIMIT: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

/// What a scripted server does after its response.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Close,
    Reset,
    Hang,
}

/// Responds to every request with the same bytes. Runs until the test program ends.
fn scripted(response: impl Into<Vec<u8>>, then: Then) -> String {
    let response = response.into();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&mut stream);
            let _ = stream.write_all(&response);
            match then {
                Then::Close => {}
                Then::Reset => {
                    let socket = rustix::net::sockopt::set_socket_linger;
                    socket(&stream, Some(Duration::ZERO)).unwrap();
                }
                Then::Hang => open.push(stream),
            }
        }
    });
    address
}

/// Head and body of a request.
fn read_request(stream: &mut TcpStream) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
        request.extend(byte);
    }
    let text = String::from_utf8_lossy(&request).to_lowercase();
    let length = text.split("\r\ncontent-length: ").nth(1);
    let length =
        length.and_then(|rest| rest.split("\r\n").next()).map_or(0, |n| n.parse().unwrap());
    let _ = stream.read_exact(&mut vec![0; length]);
}

fn http_response(head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut response = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n").into_bytes();
    response.extend_from_slice(body);
    response
}

/// The same, which announces that the connection ends: a client that kept it could send its next
/// request before the close arrives.
fn last_response(status: &str, body: &[u8]) -> Vec<u8> {
    http_response(&format!("{status}\r\nconnection: close"), body)
}

fn settings(address: &str, protocol: Protocol, deadline: Duration) -> Settings {
    let mut settings = Settings::new(address).protocol(protocol).deadline(Some(deadline));
    settings.max_response_bytes = 1 << 20;
    settings
}

fn request() -> InferRequest {
    let input = Input::new("IN", "FP32", [1, 2], vec![0; 8]);
    InferRequest::new("m").input(input).output(InferRequestedOutput::new("OUT"))
}

/// The errors of an inference, a control call, a v1 status and a v1 inference, first of the
/// blocking clients, then of the asynchronous ones, whose calls hyper makes.
fn every_error(settings: &Settings) -> [Error; 8] {
    let v1_request = v1::InferRequest {
        model: "m".into(),
        version: -1,
        header: trtserver_proto::text::parse("batch_size: 1 input { name: \"IN\" }").unwrap(),
        inputs: vec![vec![Bytes::from_static(&[0; 8])]],
        deadline: None,
    };
    let v2 = blocking::v2::BlockingClient::new(settings).unwrap();
    let v1 = blocking::v1::BlockingClient::new(settings).unwrap();
    let (other_v2, other_v1) =
        (v2::Client::new(settings).unwrap(), v1::Client::new(settings).unwrap());
    let runtime = blocking::background().unwrap();
    let errors = [
        v2.infer(&request()).unwrap_err(),
        v2.server_metadata().unwrap_err(),
        v1.status(None).unwrap_err(),
        v1.infer(&v1_request).unwrap_err(),
        runtime.block_on(other_v2.infer(&request())).unwrap_err(),
        runtime.block_on(other_v2.server_metadata()).unwrap_err(),
        runtime.block_on(other_v1.status(None)).unwrap_err(),
        runtime.block_on(other_v1.infer(&v1_request)).unwrap_err(),
    ];
    let context = blocking::v1::Context::new(settings, &ContextOptions::new("m"));
    assert!(context.is_err());
    for error in &errors {
        assert!(error.asked().contains(&settings.url), "{error:?}");
        assert!(!error.message().is_empty(), "{error:?}");
    }
    errors
}

fn kinds(errors: &[Error]) -> Vec<Kind> {
    errors.iter().map(Error::kind).collect()
}
