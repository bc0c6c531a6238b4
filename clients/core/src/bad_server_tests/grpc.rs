//! gRPC: bytes that are not a response, responses that contradict themselves, and streams that
//! break off.

use super::{LIMIT, Then, every_error, request, scripted, settings};
use crate::v1::{ContextOptions, DataType};
use crate::{Bytes, Kind, Protocol, blocking, v1};
use http::{HeaderMap, HeaderValue, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
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

/// A response of a gRPC server.
#[derive(Clone)]
pub(super) struct Grpc {
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

    pub(super) fn message(message: &impl Message) -> Self {
        Self::ok(framed(message))
    }

    /// Serves the responses in turn, the last one for ever.
    fn serve(responses: Vec<Self>) -> String {
        Self::serve_until(responses).0
    }

    /// A notification ends one connection; the receiver gets a message for each that has ended.
    pub(super) fn serve_until(
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
                End::CloseConnection => {
                    let _ = close.send(()).await;
                    // The body must not end before the connection does.
                    std::future::pending().await
                }
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
        let client =
            blocking::v2::BlockingClient::new(&settings(&address, Protocol::Grpc, LIMIT)).unwrap();
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
    let client =
        blocking::v2::BlockingClient::new(&settings(&address, Protocol::Grpc, LIMIT)).unwrap();
    let stream = client.stream().unwrap();
    stream.send(&request().id("1")).unwrap();
    assert_eq!(stream.next().unwrap().unwrap().id, "1");
    let second = client.stream().unwrap();
    assert_eq!(second.next().unwrap_err().kind(), Kind::Connection);
    let error = stream.next().unwrap_err();
    assert_eq!(error.kind(), Kind::Connection, "{error}");
    assert!(error.asked().contains(&address) && !error.is_from_server(), "{error:?}");
    assert!(stream.next().unwrap().is_none());
    // A request on the broken stream names the server, too.
    let error = stream.send(&request().id("2")).unwrap_err();
    assert!(error.asked().contains(&address), "{error}: {}", error.asked());
    // The connection is opened anew for the next stream.
    assert!(client.stream().unwrap().next().unwrap().is_some());
}
