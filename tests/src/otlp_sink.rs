//! A collector of OpenTelemetry: takes spans over HTTP and gRPC on one port, and decodes them with
//! the messages of the OpenTelemetry project, not with the server's own.

use bytes::{BufMut, Bytes, BytesMut};
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
pub use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
pub use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// What the collector does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkMode {
    Accept,
    /// It never answers.
    Stall,
    /// It is busy for this many requests, then accepts.
    Busy(u32),
    /// It refuses for good.
    Refuse,
    /// It answers with success, and bytes that are not a message.
    Lie,
    /// It accepts all but one span of each request.
    RejectOne,
}

/// A running collector; ends when it is dropped.
pub struct OtlpSink {
    /// `127.0.0.1:PORT`
    pub address: String,
    state: Arc<Mutex<SinkState>>,
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct SinkState {
    mode: Option<SinkMode>,
    spans: Vec<Span>,
    resource: BTreeMap<String, String>,
    headers: Vec<HeaderMap>,
}

impl OtlpSink {
    pub fn start(mode: SinkMode) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap_or_else(|e| panic!("runtime of the collector: {e}"));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap_or_else(|e| panic!("port of the collector: {e}"));
        let address = listener.local_addr().unwrap_or_else(|e| panic!("{e}")).to_string();
        let state = Arc::new(Mutex::new(SinkState { mode: Some(mode), ..SinkState::default() }));
        runtime.spawn(serve(listener, Arc::clone(&state)));
        Self { address, state, runtime: Some(runtime) }
    }

    pub fn set_mode(&self, mode: SinkMode) {
        lock(&self.state).mode = Some(mode);
    }

    /// Spans that were accepted.
    pub fn spans(&self) -> Vec<Span> {
        lock(&self.state).spans.clone()
    }

    pub fn span_count(&self) -> usize {
        lock(&self.state).spans.len()
    }

    /// How many accepted spans have this name.
    pub fn spans_named(&self, name: &str) -> usize {
        lock(&self.state).spans.iter().filter(|span| span.name == name).count()
    }

    /// Attributes of the server.
    pub fn resource(&self) -> BTreeMap<String, String> {
        lock(&self.state).resource.clone()
    }

    /// Heads of all requests.
    pub fn request_headers(&self) -> Vec<HeaderMap> {
        lock(&self.state).headers.clone()
    }
}

impl Drop for OtlpSink {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn lock(state: &Mutex<SinkState>) -> MutexGuard<'_, SinkState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text or number of an attribute.
pub fn attribute(span: &Span, key: &str) -> Option<String> {
    let pair = span.attributes.iter().find(|pair| pair.key == key)?;
    attributes(std::slice::from_ref(pair)).remove(key)
}

fn attributes(pairs: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::BoolValue(flag) => Some(flag.to_string()),
        _ => None,
    };
    pairs.iter().filter_map(|pair| Some((pair.key.clone(), text(&pair.value)?))).collect()
}

async fn serve(listener: TcpListener, state: Arc<Mutex<SinkState>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, Arc::clone(&state)));
            let builder = auto::Builder::new(TokioExecutor::new());
            // A client that goes is none of the tests' business.
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<SinkState>>,
) -> Result<Answer, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let is_grpc = match head.uri.path() {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => true,
        "/v1/traces" => false,
        _ => return Ok(http_answer(StatusCode::NOT_FOUND, Bytes::new())),
    };
    let mode = {
        let mut state = lock(&state);
        state.headers.push(head.headers.clone());
        match state.mode {
            Some(SinkMode::Busy(0)) => SinkMode::Accept,
            Some(SinkMode::Busy(left)) => {
                state.mode = Some(SinkMode::Busy(left - 1));
                SinkMode::Busy(left)
            }
            mode => mode.unwrap_or(SinkMode::Accept),
        }
    };
    let rejected = match mode {
        SinkMode::Stall => return std::future::pending().await,
        SinkMode::Accept => 0,
        SinkMode::RejectOne => 1,
        SinkMode::Busy(_) if is_grpc => return Ok(grpc_answer(14, None)),
        SinkMode::Busy(_) => {
            return Ok(http_answer(StatusCode::SERVICE_UNAVAILABLE, Bytes::new()));
        }
        SinkMode::Refuse if is_grpc => return Ok(grpc_answer(3, None)),
        SinkMode::Refuse => return Ok(http_answer(StatusCode::BAD_REQUEST, Bytes::new())),
        SinkMode::Lie => {
            let lie = Bytes::from_static(b"\xffnot a message");
            return Ok(if is_grpc {
                grpc_answer(0, Some(lie))
            } else {
                http_answer(StatusCode::OK, lie)
            });
        }
    };
    let accepted = decode(&head.headers, is_grpc, &body);
    let response = accept(accepted, rejected, &state).encode_to_vec();
    Ok(match is_grpc {
        false => http_answer(StatusCode::OK, response.into()),
        true => {
            let mut framed = BytesMut::new();
            framed.put_u8(0);
            framed.put_u32(response.len() as u32);
            framed.put_slice(&response);
            grpc_answer(0, Some(framed.freeze()))
        }
    })
}

/// The message of a request, which a collector must be able to read.
fn decode(headers: &HeaderMap, is_grpc: bool, body: &Bytes) -> ExportTraceServiceRequest {
    let (message, is_packed) = match is_grpc {
        true => (body.slice(5..), body[0] == 1),
        false => (body.clone(), headers.get("content-encoding").is_some()),
    };
    let mut plain = Vec::new();
    if is_packed {
        GzDecoder::new(&message[..]).read_to_end(&mut plain).unwrap_or_else(|e| panic!("{e}"));
    } else {
        plain.extend_from_slice(&message);
    }
    ExportTraceServiceRequest::decode(&plain[..]).unwrap_or_else(|e| panic!("{e}"))
}

fn accept(
    request: ExportTraceServiceRequest,
    rejected: usize,
    state: &Mutex<SinkState>,
) -> ExportTraceServiceResponse {
    let mut state = lock(state);
    for group in request.resource_spans {
        state.resource = attributes(&group.resource.unwrap_or_default().attributes);
        for scope in group.scope_spans {
            state.spans.extend(scope.spans.into_iter().skip(rejected));
        }
    }
    let partial = ExportTracePartialSuccess {
        rejected_spans: rejected as i64,
        error_message: "one is too many".to_owned(),
    };
    ExportTraceServiceResponse { partial_success: (rejected > 0).then_some(partial) }
}

fn http_answer(status: StatusCode, body: Bytes) -> Answer {
    let mut response = Response::new(Full::new(body).boxed());
    *response.status_mut() = status;
    response
}

fn grpc_answer(status: u16, message: Option<Bytes>) -> Answer {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(status));
    let frames = message.map(Frame::data).into_iter().chain([Frame::trailers(trailers)]);
    let frames = tokio_stream::iter(frames.map(Ok::<_, Infallible>));
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(frames)));
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}
