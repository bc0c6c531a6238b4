//! Servers that misbehave: every call ends with an error that names the request, none hangs or panics.
//!
//! HTTP servers are scripted byte by byte; gRPC servers respond with frames that no honest server sends.

use crate::v1::{ContextOptions, DataType};
use crate::v2::{InferRequest, Input, RequestedOutput};
use crate::{Bytes, Error, Kind, Protocol, Settings, blocking, v1};
use http::{HeaderMap, HeaderValue, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use trtserver_proto::v1::infer_response_header::Output;
use trtserver_proto::v1::infer_response_header::output::Raw;
use trtserver_proto::v1::{
    InferResponseHeader, ModelStatus, RequestStatus, RequestStatusCode, ServerStatus,
    StatusResponse,
};
use trtserver_proto::v2::model_infer_response::InferOutputTensor;
use trtserver_proto::v2::{
    ModelConfig, ModelInferResponse, ModelInput, ModelOutput, ModelStreamInferResponse,
};

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

fn http(head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut response = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n").into_bytes();
    response.extend_from_slice(body);
    response
}

fn settings(address: &str, protocol: Protocol, deadline: Duration) -> Settings {
    let mut settings = Settings::new(address).protocol(protocol).deadline(Some(deadline));
    settings.max_response_bytes = 1 << 20;
    settings
}

fn request() -> InferRequest {
    let input = Input::new("IN", "FP32", [1, 2], vec![0; 8]);
    InferRequest::new("m").input(input).output(RequestedOutput::new("OUT"))
}

/// The errors of an inference, a control call, a v1 status and a v1 inference.
fn every_error(settings: &Settings) -> [Error; 4] {
    let v2 = blocking::v2::Client::new(settings).unwrap();
    let v1 = blocking::v1::Client::new(settings).unwrap();
    let v1_request = v1::InferRequest {
        model: "m".into(),
        version: -1,
        header: trtserver_proto::text::parse("batch_size: 1 input { name: \"IN\" }").unwrap(),
        inputs: vec![vec![Bytes::from_static(&[0; 8])]],
        deadline: None,
    };
    let errors = [
        v2.infer(&request()).unwrap_err(),
        v2.server_metadata().unwrap_err(),
        v1.status(None).unwrap_err(),
        v1.infer(&v1_request).unwrap_err(),
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

#[test]
fn refused_connection_names_the_url() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let errors = every_error(&settings(&address, protocol, LIMIT));
        assert_eq!(kinds(&errors), [Kind::Connect; 4]);
        assert_eq!(errors[0].message(), "cannot connect: Connection refused");
        let prefix = match protocol {
            Protocol::Http => "HTTP client failed: cannot connect",
            Protocol::Grpc => "GRPC client failed: 14: cannot connect",
        };
        assert!(errors[3].message().starts_with(prefix), "{}", errors[3]);
        assert_eq!(errors[3].v1_code(), RequestStatusCode::Internal);
    }
}

#[test]
fn unknown_host_is_a_connection_error() {
    let settings = Settings::new("host.invalid:1");
    let error = blocking::v2::Client::new(&settings).unwrap().is_live().unwrap_err();
    assert_eq!(error.kind(), Kind::Connect, "{error}");
    assert!(error.asked().contains("host.invalid:1"), "{error}");
}

#[test]
fn http_responses_that_are_none() {
    use Kind::{Connection, Protocol as Malformed};
    let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-length:";
    for (response, then, expected) in [
        (String::new(), Then::Close, Connection),
        ("HTTP/1.1 200 OK\r\n".to_owned(), Then::Close, Connection),
        ("garbage\r\n\r\n".to_owned(), Then::Close, Malformed),
        ("\0\u{1}\u{2}".to_owned(), Then::Close, Malformed),
        ("HTTP/9.9 200 OK\r\n\r\n".to_owned(), Then::Close, Malformed),
        (format!("{head} 1000\r\n\r\nten bytes."), Then::Close, Connection),
        (format!("{head} 1000\r\n\r\nten bytes."), Then::Reset, Connection),
        (format!("{head} many\r\n\r\n"), Then::Close, Malformed),
        (format!("{head} 99999999999\r\n\r\n"), Then::Hang, Malformed),
        (format!("{head} 99999999999999999999999\r\n\r\n"), Then::Hang, Malformed),
        (format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(9 << 20)), Then::Hang, Malformed),
    ] {
        let settings = settings(&scripted(response.clone(), then), Protocol::Http, LIMIT);
        let errors = every_error(&settings);
        let shown = &response[..response.len().min(80)];
        assert_eq!(kinds(&errors), [expected; 4], "{shown:?}: {errors:?}");
    }
    // The socket may report the reset or the end first.
    let settings = settings(&scripted("", Then::Reset), Protocol::Http, LIMIT);
    assert_eq!(kinds(&every_error(&settings)), [Connection; 4]);
    let settings = self::settings(&scripted(chunks, Then::Close), Protocol::Http, LIMIT);
    for error in every_error(&settings) {
        assert!(matches!(error.kind(), Connection | Malformed), "{error:?}");
    }
}

#[test]
fn silent_server_is_left_at_the_deadline() {
    for response in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"] {
        for protocol in [Protocol::Http, Protocol::Grpc] {
            let settings = settings(&scripted(response, Then::Hang), protocol, SHORT);
            let error =
                blocking::v2::Client::new(&settings).unwrap().infer(&request()).unwrap_err();
            if protocol == Protocol::Http || response.is_empty() {
                assert_eq!(error.kind(), Kind::DeadlineExceeded, "{error}");
            }
            assert!(error.asked().contains(&settings.url), "{error}");
        }
    }
}

#[test]
fn http_responses_of_another_server() {
    let html = http("200 OK", b"<html><body>It works!</body></html>");
    let errors = every_error(&settings(&scripted(html, Then::Close), Protocol::Http, LIMIT));
    assert_eq!(kinds(&errors), [Kind::Protocol; 4]);
    assert!(errors[1].message().contains("It works!"), "{}", errors[1]);
    assert_eq!(errors[2].message(), "status request did not return status");
    assert_eq!(errors[3].message(), "infer request did not return status");
    let empty = http("200 OK", b"");
    let errors = every_error(&settings(&scripted(empty, Then::Close), Protocol::Http, LIMIT));
    assert_eq!(kinds(&errors), [Kind::Protocol; 4]);
    let proxy = http("502 Bad Gateway", b"<html>Bad Gateway</html>");
    let errors = every_error(&settings(&scripted(proxy, Then::Close), Protocol::Http, LIMIT));
    assert_eq!(errors[0].kind(), Kind::Unavailable);
    assert!(errors[0].message().starts_with("HTTP 502"), "{}", errors[0]);
}

/// An inference over v2 HTTP whose response has this head and body.
fn v2_http(headers: &str, body: &[u8]) -> Error {
    let address = scripted(http(&format!("200 OK{headers}"), body), Then::Close);
    let client = blocking::v2::Client::new(&settings(&address, Protocol::Http, LIMIT)).unwrap();
    let error = client.infer(&request()).unwrap_err();
    assert!(error.asked().starts_with("POST http://") || error.asked().contains(&address));
    error
}

#[test]
fn v2_http_responses_that_lie_about_tensors() {
    let output = |rest: &str| {
        format!(r#"{{"model_name":"m","outputs":[{{"name":"OUT","datatype":"FP32",{rest}}}]}}"#)
    };
    for (rest, tensors, expected) in [
        (
            r#""shape":[1,2],"parameters":{"binary_data_size":8}"#,
            4,
            "has 8 bytes by its binary_data_size",
        ),
        (
            r#""shape":[1,2],"parameters":{"binary_data_size":4}"#,
            4,
            "FP32 of shape [1, 2] has 8 bytes",
        ),
        (
            r#""shape":[1,2],"parameters":{"binary_data_size":8}"#,
            9,
            "1 bytes behind its last output",
        ),
        (r#""shape":[1,2],"parameters":{"binary_data_size":-8}"#, 8, "is not a binary_data_size"),
        (r#""shape":[1,-2],"parameters":{"binary_data_size":8}"#, 8, "is not a tensor"),
        (r#""shape":[4611686018427387904,4],"data":[]"#, 0, "is not a tensor"),
        (r#""shape":[1,2],"data":[1,"x"]"#, 0, "is not a FP32 element"),
        (r#""shape":[1,2],"data":[1]"#, 0, "FP32 of shape [1, 2] has 8 bytes"),
        (r#""shape":[1,2]"#, 0, "FP32 of shape [1, 2] has 8 bytes"),
        (r#""shape":"#, 0, "is not an inference response"),
    ] {
        let head = output(rest);
        let length = format!("\r\ninference-header-content-length: {}", head.len());
        let mut body = head.into_bytes();
        body.resize(body.len() + tensors, 0);
        let error = v2_http(&length, &body);
        assert!(error.message().contains(expected), "{rest}: {error}");
        assert_eq!(error.kind(), Kind::Protocol, "{error}");
    }
    for (headers, expected) in [
        ("\r\ninference-header-content-length: 1000", "has 1000 bytes by its header"),
        ("\r\ninference-header-content-length: x", "is not a length"),
        ("\r\ncontent-encoding: br", "unknown encoding `br`"),
        ("\r\ncontent-encoding: gzip", "is not valid gzip"),
    ] {
        let error = v2_http(headers, br#"{"outputs":[]}"#);
        assert!(error.message().contains(expected), "{headers}: {error}");
    }
}

#[test]
fn compressed_response_beyond_the_limit_is_refused() {
    let zeros = vec![b' '; 8 << 20];
    let how = crate::Compression::Gzip;
    let bomb = crate::transport::compress::compress(how, &zeros).unwrap();
    let error = v2_http("\r\ncontent-encoding: gzip", &bomb);
    assert!(error.message().contains("more than the limit of 1048576 bytes"), "{error}");
}

/// A v1 inference over HTTP on a model with one FP32 input and output of two elements.
fn v1_http(header: &str, body: &[u8]) -> Error {
    let status = "\r\nNV-Status: code: SUCCESS server_id: \"s\" request_id: 5";
    let address = scripted(http(&format!("200 OK{status}{header}"), body), Then::Close);
    let settings = settings(&address, Protocol::Http, LIMIT);
    let request = v1::InferRequest { model: "m".into(), version: -1, ..Default::default() };
    blocking::v1::Client::new(&settings).unwrap().infer(&request).unwrap_err()
}

#[test]
fn v1_http_responses_that_lie_about_tensors() {
    let header = |size| {
        format!(
            "\r\nNV-InferResponse: model_name: \"m\" batch_size: 1 output {{ name: \"OUT\" raw {{ dims: 2 batch_byte_size: {size} }} }}"
        )
    };
    for (header, body, expected) in [
        (String::new(), &[0; 8][..], "infer request did not return response header"),
        ("\r\nNV-InferResponse: garbage".into(), &[0; 8], "did not return response header"),
        (header(8), &[0; 8], "infer request did not return result header"),
        (header(9), &[0; 8], "has 9 bytes by its header, the response has 8 left"),
        (header(u64::MAX), &[0; 8], "bytes by its header"),
        (header(4), &[0xff; 8], "the response is not a InferResponseHeader"),
        (header(6), b"12345\0\x08", "the response is not a InferResponseHeader"),
        (header(8), b"12345678\x18\x01", "has 0 outputs, the response header 1"),
    ] {
        let error = v1_http(&header, body);
        assert!(error.message().contains(expected), "{header}: {error}");
        assert_eq!(error.v1_code(), RequestStatusCode::Internal);
    }
}

/// A response of a gRPC server.
#[derive(Clone)]
struct Grpc {
    status: u16,
    content_type: &'static str,
    data: Vec<Bytes>,
    end: End,
}

/// How a response ends.
#[derive(Clone)]
enum End {
    /// With a status and its text.
    Status(&'static str, &'static str),
    WithoutStatus,
    Never,
    CloseConnection,
}

impl Grpc {
    fn ok(data: impl Into<Bytes>) -> Self {
        Self {
            status: 200,
            content_type: "application/grpc",
            data: vec![data.into()],
            end: End::Status("0", ""),
        }
    }

    fn message(message: &impl Message) -> Self {
        Self::ok(framed(message))
    }

    /// Serves the responses in turn, the last one for ever.
    fn serve(responses: Vec<Self>) -> String {
        Self::serve_until(responses).0
    }

    /// A notification ends one connection; the receiver gets a message for each that has ended.
    fn serve_until(
        responses: Vec<Self>,
    ) -> (String, Arc<tokio::sync::Notify>, std::sync::mpsc::Receiver<()>) {
        let (ended, endings) = std::sync::mpsc::channel();
        let end = Arc::new(tokio::sync::Notify::new());
        let ending = end.clone();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        listener.set_nonblocking(true).unwrap();
        let responses = Arc::new(responses);
        blocking::background().unwrap().spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let served = Arc::new(std::sync::atomic::AtomicUsize::new(0));
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (responses, served) = (responses.clone(), served.clone());
                let (close, mut closed) = mpsc::channel::<()>(1);
                let service = service_fn(move |_| {
                    let at = served.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let response = responses[at.min(responses.len() - 1)].clone();
                    let close = close.clone();
                    async move { Ok::<_, Infallible>(response.respond(close)) }
                });
                let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service);
                let (ended, ending) = (ended.clone(), ending.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        _ = connection => {}
                        _ = closed.recv() => {}
                        () = ending.notified() => {}
                    }
                    let _ = ended.send(());
                });
            }
        });
        (address, end, endings)
    }

    fn respond(
        self,
        close: mpsc::Sender<()>,
    ) -> Response<impl http_body::Body<Data = Bytes, Error = Infallible>> {
        let (frames, receiver) = mpsc::channel(8);
        tokio::spawn(async move {
            for data in self.data {
                let _ = frames.send(Ok(Frame::data(data))).await;
            }
            match self.end {
                End::Status(status, message) => {
                    let mut trailers = HeaderMap::new();
                    trailers.insert("grpc-status", HeaderValue::from_static(status));
                    trailers.insert("grpc-message", HeaderValue::from_static(message));
                    let _ = frames.send(Ok(Frame::trailers(trailers))).await;
                }
                End::WithoutStatus => {}
                End::Never => std::future::pending().await,
                End::CloseConnection => drop(close.send(()).await),
            }
        });
        let body = StreamBody::new(tokio_stream::wrappers::ReceiverStream::new(receiver));
        Response::builder()
            .status(self.status)
            .header("content-type", self.content_type)
            .body(body)
            .unwrap()
    }
}

fn framed(message: &impl Message) -> Bytes {
    let mut bytes = vec![0];
    bytes.extend((message.encoded_len() as u32).to_be_bytes());
    message.encode(&mut bytes).unwrap();
    bytes.into()
}

#[test]
fn grpc_on_a_server_without_http2() {
    for (response, then) in [
        ("", Then::Close),
        ("", Then::Reset),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", Then::Close),
        ("garbage garbage garbage garbage", Then::Close),
        ("<html></html>", Then::Hang),
    ] {
        // Reads the preface as if it were a request: it contains an empty line.
        let errors = every_error(&settings(&scripted(response, then), Protocol::Grpc, LIMIT));
        for error in errors {
            assert!(matches!(error.kind(), Kind::Connection | Kind::Protocol), "{error:?}");
        }
    }
}

#[test]
fn grpc_responses_that_are_none() {
    let ok = |data: &'static [u8]| Grpc::ok(data);
    for (response, kind, expected) in [
        (Grpc { status: 404, end: End::WithoutStatus, ..ok(b"") }, Kind::NotFound, "HTTP 404"),
        (Grpc { content_type: "text/html", ..ok(b"<html>") }, Kind::Protocol, "`text/html`"),
        (Grpc { end: End::WithoutStatus, ..ok(b"") }, Kind::Protocol, "without a gRPC status"),
        (ok(b""), Kind::Protocol, "has no message"),
        (ok(b"\0\0\0"), Kind::Protocol, "within the prefix"),
        (ok(b"\0\0\0\0\x64abc"), Kind::Protocol, "after 3 bytes of a message of 100"),
        (ok(b"\0\xff\xff\xff\xffabc"), Kind::Protocol, "the limit is 1048576 bytes"),
        (ok(b"\x07\0\0\0\x01a"), Kind::Protocol, "the compressed flag"),
        (ok(b"\x01\0\0\0\x01a"), Kind::Protocol, ""),
        (ok(b"\0\0\0\0\x02\xff\xff"), Kind::Protocol, "the response is not a "),
        (ok(b"\0\0\0\0\0\0\0\0\0\0"), Kind::Protocol, "several messages"),
        (Grpc { end: End::Status("7", "not%20you"), ..ok(b"") }, Kind::PermissionDenied, "not you"),
        (Grpc { end: End::Status("x", ""), ..ok(b"") }, Kind::Unknown, ""),
    ] {
        let address = Grpc::serve(vec![response]);
        for error in every_error(&settings(&address, Protocol::Grpc, LIMIT)) {
            assert_eq!(error.kind(), kind, "{error:?}");
            assert!(error.message().contains(expected), "{error:?}");
        }
    }
}

#[test]
fn v2_grpc_responses_that_lie_about_tensors() {
    let output = |shape: &[i64]| InferOutputTensor {
        name: "OUT".into(),
        datatype: "FP32".into(),
        shape: shape.to_vec(),
        ..Default::default()
    };
    for (outputs, raw, expected) in [
        (
            vec![output(&[1, 2])],
            vec![Bytes::from_static(&[0; 4])],
            "has 8 bytes, the response has 4",
        ),
        (vec![output(&[1, 2])], vec![], "has 8 bytes, the response has 0"),
        (vec![output(&[1, 2]); 2], vec![Bytes::from_static(&[0; 8])], "but the bytes of 1"),
        (vec![output(&[-1, 2])], vec![Bytes::new()], "is not a tensor"),
    ] {
        let message = ModelInferResponse {
            model_name: "m".into(),
            outputs,
            raw_output_contents: raw,
            ..Default::default()
        };
        let address = Grpc::serve(vec![Grpc::message(&message)]);
        let client = blocking::v2::Client::new(&settings(&address, Protocol::Grpc, LIMIT)).unwrap();
        let error = client.infer(&request()).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert!(error.asked().contains(&address), "{error:?}");
    }
}

#[test]
fn v1_grpc_responses_that_lie_about_tensors() {
    let success = RequestStatus { code: RequestStatusCode::Success.into(), ..Default::default() };
    let io = |name: &str| (name.to_owned(), DataType::TypeFp32.into(), vec![2]);
    let (name, data_type, dims) = io("IN");
    let input = ModelInput { name, data_type, dims, ..Default::default() };
    let (name, data_type, dims) = io("OUT");
    let output = ModelOutput { name, data_type, dims, ..Default::default() };
    let config = ModelConfig { input: vec![input], output: vec![output], ..Default::default() };
    let model = ModelStatus { config: Some(config), ..Default::default() };
    let mut status = ServerStatus::default();
    status.model_status.insert("m".into(), model);
    let status =
        StatusResponse { request_status: Some(success.clone()), server_status: Some(status) };
    let raw = |name: &str, batch_size, raw: &[u8]| trtserver_proto::v1::InferResponse {
        request_status: Some(success.clone()),
        meta_data: Some(InferResponseHeader {
            model_name: "m".into(),
            batch_size,
            output: vec![Output {
                name: name.into(),
                raw: Some(Raw { dims: vec![2], batch_byte_size: 8, ..Default::default() }),
                ..Default::default()
            }],
            ..Default::default()
        }),
        raw_output: if raw.is_empty() { vec![] } else { vec![Bytes::copy_from_slice(raw)] },
    };
    for (response, expected) in [
        (raw("OUT", 1, &[0; 7]), "has 7 bytes, expected 8"),
        (raw("OUT", u32::MAX, &[0; 8]), "has the batch size 4294967295, the request has 1"),
        (raw("NONE", 1, &[0; 8]), "unknown output 'NONE' for 'm'"),
        (raw("OUT", 1, &[]), "Expected RAW output for result 'OUT'"),
    ] {
        let address = Grpc::serve(vec![Grpc::message(&status), Grpc::message(&response)]);
        let settings = settings(&address, Protocol::Grpc, LIMIT);
        let context = blocking::v1::Context::new(&settings, &ContextOptions::new("m")).unwrap();
        let mut run = context.new_run();
        let outputs = vec![("OUT".into(), v1::OutputFormat::Raw)];
        run.set_options(&v1::RunOptions { outputs, ..Default::default() }).unwrap();
        run.input("IN").unwrap().set_raw(vec![0; 8]).unwrap();
        let error = context.run(&run).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
    }
}

#[test]
fn server_that_ends_in_the_middle_of_a_stream() {
    let message = ModelStreamInferResponse {
        infer_response: Some(ModelInferResponse { id: "1".into(), ..Default::default() }),
        ..Default::default()
    };
    // The request after the first message makes the server close the connection.
    let begun = Grpc { end: End::Never, ..Grpc::message(&message) };
    let close = Grpc { end: End::CloseConnection, ..Grpc::ok("") };
    let address = Grpc::serve(vec![begun.clone(), close, begun]);
    let client = blocking::v2::Client::new(&settings(&address, Protocol::Grpc, LIMIT)).unwrap();
    let stream = client.stream().unwrap();
    stream.send(&request().id("1")).unwrap();
    assert_eq!(stream.next().unwrap().unwrap().id, "1");
    let second = client.stream().unwrap();
    assert_eq!(second.next().unwrap_err().kind(), Kind::Connection);
    let error = stream.next().unwrap_err();
    assert_eq!(error.kind(), Kind::Connection, "{error}");
    assert!(error.asked().contains(&address) && !error.is_from_server(), "{error:?}");
    assert!(stream.next().unwrap().is_none());
    // The connection is opened anew for the next stream.
    assert!(client.stream().unwrap().next().unwrap().is_some());
}

#[test]
fn closed_idle_connection_is_replaced() {
    let metadata = http("200 OK", br#"{"name":"s","version":"1","extensions":[]}"#);
    let address = scripted(metadata, Then::Close);
    let client = blocking::v2::Client::new(&settings(&address, Protocol::Http, LIMIT)).unwrap();
    for _ in 0..4 {
        assert_eq!(client.server_metadata().unwrap().name, "s");
    }
}

/// Responds to the requests of one connection until `requests` are served, closes it, and sends the number of the connection.
fn keeping_alive(response: Vec<u8>, requests: usize) -> (String, std::sync::mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, closed) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            for _ in 0..requests {
                read_request(&mut stream);
                stream.write_all(&response).unwrap();
            }
            drop(stream);
            let _ = sender.send(number);
        }
    });
    (address, closed)
}

#[test]
fn connection_is_kept_and_replaced_once_it_is_closed() {
    let body = br#"{"model_name":"m","outputs":[]}"#;
    let (address, closed) = keeping_alive(http("200 OK", body), 3);
    let client = blocking::v2::Client::new(&settings(&address, Protocol::Http, LIMIT)).unwrap();
    for number in 0..2 {
        for _ in 0..3 {
            client.infer(&request()).unwrap();
        }
        assert_eq!(closed.recv().unwrap(), number);
        // Only a connection that was idle for a while is looked at before it is used.
        std::thread::sleep(Duration::from_millis(210));
    }
}

#[test]
fn grpc_connection_that_the_server_ends_is_replaced() {
    let live = trtserver_proto::v2::ServerLiveResponse { live: true };
    let (address, end, endings) = Grpc::serve_until(vec![Grpc::message(&live)]);
    let client = blocking::v2::Client::new(&settings(&address, Protocol::Grpc, LIMIT)).unwrap();
    for _ in 0..2 {
        assert!(client.is_live().unwrap());
        end.notify_one();
        endings.recv_timeout(LIMIT).unwrap();
        std::thread::sleep(Duration::from_millis(210));
    }
}

#[test]
fn refused_connection_is_tried_again_as_often_as_the_settings_say() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let mut settings = settings(&address, Protocol::Http, LIMIT);
    settings.connect_retries = 2;
    let start = std::time::Instant::now();
    let error = blocking::v2::Client::new(&settings).unwrap().is_live().unwrap_err();
    assert_eq!(error.kind(), Kind::Connect, "{error}");
    assert!(start.elapsed() >= Duration::from_millis(50 + 100));
}

/// The caller may free its memory when the call returns, also if the server never read the request.
#[test]
fn borrowed_memory_is_released_at_the_deadline() {
    let data = vec![0_u8; 32 << 20];
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let client = blocking::v2::Client::new(&settings(&address, protocol, SHORT)).unwrap();
        let borrow = crate::Borrow::new();
        // SAFETY: `data` outlives the call, which returns after the borrow was released.
        let tensor = unsafe { borrow.bytes(data.as_ptr(), data.len()) };
        let input = Input::new("IN", "UINT8", [data.len() as i64], tensor);
        let error = client.infer_borrowed(InferRequest::new("m").input(input), &borrow);
        assert_eq!(error.unwrap_err().kind(), Kind::DeadlineExceeded);
        assert!(borrow.is_released());
    }
}
