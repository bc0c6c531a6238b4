//! gRPC: unary calls and streams of encoded messages over HTTP/2.
//!
//! tonic copies every message that it sends into one buffer. Tensors are sent from where they lie
//! instead, so the framing is done here; statuses are tonic's.

use super::body::{RequestBody, STREAM_BACKLOG, Segments};
use super::connect::SocketConnector;
use super::direct::enter_runtime;
use super::http2::{Responding, connection_error};
use super::{ClientTransport, Connections, compress, deadline_exceeded, verbose, within_deadline};
use crate::error::{Error, Kind, Result};
use crate::settings::Compression;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE, USER_AGENT};
use http::{HeaderName, Request, Response, Uri, Version};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};

pub(super) const AGENT: &str = concat!("trtserver-client/", env!("CARGO_PKG_VERSION"));

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Compressed flag and length, in front of each message.
pub(super) const PREFIX: usize = 5;

/// One RPC.
pub(crate) struct GrpcCall<'a> {
    /// `/package.Service/Method`
    pub path: &'a str,
    pub headers: &'a [(String, String)],
    pub compression: Option<Compression>,
    pub deadline: Option<Instant>,
}

/// An empty message with the bytes of the prefix in front, to append to.
pub(crate) fn message_segments(capacity: usize) -> Segments {
    let mut segments = Segments::with_capacity(PREFIX + capacity);
    segments.put(&[0; PREFIX]);
    segments
}

/// Fills in the prefix, and compresses.
fn frame_message(message: Segments, compression: Option<Compression>) -> Result<VecDeque<Bytes>> {
    let too_long = |len: usize| {
        Error::invalid(format!(
            "Request has byte size {len} which exceed gRPC's byte size limit {}.",
            i32::MAX
        ))
    };
    let len = message.len() - PREFIX;
    if len > i32::MAX as usize {
        return Err(too_long(len));
    }
    if let Some(how) = compression {
        let compressed = compress::compress_body(how, &message.join()[PREFIX..])?;
        let mut framed = Segments::with_capacity(PREFIX + compressed.len());
        framed.put(&[1]);
        framed.put(&(compressed.len() as u32).to_be_bytes());
        framed.put_shared(&compressed.into());
        return Ok(framed.finish());
    }
    Ok(message.finish_with_prefix(&(len as u32).to_be_bytes(), 1))
}

impl ClientTransport {
    pub fn asked_grpc(&self, path: &str) -> String {
        format!("{}{path}", self.address.shown)
    }

    /// Sends one message and returns the one that comes back.
    pub async fn unary(&self, rpc: GrpcCall<'_>, message: Segments) -> Result<Bytes> {
        let (path, deadline) = (rpc.path, rpc.deadline);
        let received = if self.is_direct(message.len()) {
            self.unary_direct(rpc, message).await
        } else {
            enter_runtime().await;
            within_deadline(deadline, self.unary_now(rpc, message)).await
        };
        received.map_err(|e| {
            self.forget_broken(&e);
            e.with_asked(|| self.asked_grpc(path))
        })
    }

    fn forget_broken(&self, error: &Error) {
        if let (Kind::Connection, Connections::Grpc(http2)) = (error.kind(), &self.connections) {
            http2.forget();
        }
    }

    async fn unary_now(&self, rpc: GrpcCall<'_>, message: Segments) -> Result<Bytes> {
        let Connections::Grpc(http2) = &self.connections else { return Err(Self::no_grpc()) };
        let segments = frame_message(message, rpc.compression)?;
        let left = segments.iter().map(Bytes::len).sum();
        let body = RequestBody::Whole { segments, left, sent: None };
        let request = self.rpc_request(&rpc, body, &http2.connector)?;
        only_message(self.reader(http2.send(request).await?.map(GrpcBody::Incoming))?).await
    }

    async fn unary_direct(&self, rpc: GrpcCall<'_>, message: Segments) -> Result<Bytes> {
        let start = Instant::now();
        let message = frame_message(message, rpc.compression)?;
        let reader = self.reader(self.call_direct(&rpc, &message).await?);
        let received = match reader {
            Ok(reader) => only_message(reader).await,
            Err(error) => Err(error),
        };
        received.map_err(|error| {
            // The kernel's timeouts are coarse, so the server may notice first that the deadline
            // has passed.
            let passed = rpc.deadline.is_some_and(|at| Instant::now() >= at);
            match passed && error.is_from_server() && error.kind() == Kind::DeadlineExceeded {
                true => deadline_exceeded(start),
                false => error,
            }
        })
    }

    /// Opens a stream. The call itself has no deadline.
    pub async fn open(self: &Arc<Self>, rpc: GrpcCall<'_>) -> Result<(RpcSender, RpcReceiver)> {
        let Connections::Grpc(http2) = &self.connections else { return Err(Self::no_grpc()) };
        let (sender, messages) = mpsc::unbounded_channel();
        let backlog = Arc::new(Semaphore::new(STREAM_BACKLOG));
        let segments = VecDeque::new();
        let body = RequestBody::Stream { segments, messages, backlog: backlog.clone() };
        let request = self.rpc_request(&rpc, body, &http2.connector)?;
        let asked = || self.asked_grpc(rpc.path);
        let responding = within_deadline(rpc.deadline, http2.open(request)).await;
        let responding = responding.map_err(|e| e.with_asked(asked))?;
        let sender = RpcSender {
            messages: sender,
            backlog: backlog.clone(),
            compression: rpc.compression,
            asked: asked(),
        };
        let receiver = RpcReceiver {
            backlog,
            transport: self.clone(),
            asked: asked(),
            state: StreamState::Opening(responding),
        };
        Ok((sender, receiver))
    }

    fn rpc_request(
        &self,
        rpc: &GrpcCall<'_>,
        body: RequestBody,
        connector: &SocketConnector,
    ) -> Result<Request<RequestBody>> {
        let scheme = if connector.is_encrypted() { "https" } else { "http" };
        let uri = Uri::builder()
            .scheme(scheme)
            .authority(connector.authority.as_str())
            .path_and_query(rpc.path)
            .build()
            .map_err(|e| Error::invalid(format!("`{}` is not a path: {e}", rpc.path)))?;
        let mut request = Request::post(uri)
            .version(Version::HTTP_2)
            .body(body)
            .map_err(|e| Error::invalid(e.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.extend(added_fields(rpc));
        for (name, value) in &self.headers {
            headers.append(name.clone(), value.clone());
        }
        for (name, value) in rpc.headers {
            let refuse = || Error::invalid(format!("`{name}: {value}` is not a header"));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse())?;
            headers.append(name, HeaderValue::from_str(value).map_err(|_| refuse())?);
        }
        if self.verbose {
            verbose::print_request("POST", rpc.path, Version::HTTP_2, request.headers());
        }
        Ok(request)
    }

    fn reader(&self, response: Response<GrpcBody>) -> Result<GrpcReader> {
        let (head, body) = response.into_parts();
        if self.verbose {
            verbose::print_response(head.version, head.status, &head.headers);
        }
        // A status among the headers: the RPC failed before any message.
        if let Some(error) = read_status(&head.headers)? {
            return Err(error);
        }
        let text = |name: HeaderName| {
            let value = head.headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
            String::from_utf8_lossy(value).into_owned()
        };
        let content_type = text(CONTENT_TYPE);
        if head.status.as_u16() != 200 {
            let kind = Kind::from_http_status(head.status.as_u16());
            return Err(Error::new(kind, format!("HTTP {} without a gRPC status", head.status)));
        }
        if !content_type.starts_with("application/grpc") {
            return Err(Error::protocol(format!(
                "the response has the content type `{content_type}`, expected application/grpc"
            )));
        }
        Ok(GrpcReader {
            body,
            parts: VecDeque::new(),
            have: 0,
            encoding: text(ENCODING),
            limit: self.max_response_bytes,
            verbose: self.verbose,
            ended: head.headers.contains_key("grpc-status"),
        })
    }
}

/// The only message of a response.
async fn only_message(mut reader: GrpcReader) -> Result<Bytes> {
    let Some(first) = reader.next().await? else {
        return Err(Error::protocol("the response has no message, expected one"));
    };
    if reader.next().await?.is_some() {
        return Err(Error::protocol("the response has several messages, expected one"));
    }
    Ok(first)
}

/// Header fields by the options of an RPC.
pub(super) fn added_fields(rpc: &GrpcCall<'_>) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let compression = rpc.compression.into_iter().flat_map(|how| {
        let accepted = HeaderValue::from_static("identity,gzip,deflate");
        [(ENCODING, HeaderValue::from_static(how.name())), (ACCEPT_ENCODING, accepted)]
    });
    let left = rpc.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    compression.chain(left.map(|left| (TIMEOUT, timeout_header(left))))
}

/// The value of grpc-timeout: at most eight digits and a unit. Rounded up to milliseconds from a
/// second on, so that calls with the same limit have equal headers.
fn timeout_header(left: Duration) -> HeaderValue {
    let left = match left.as_secs() {
        0 => left,
        _ => Duration::from_millis((left + Duration::from_nanos(999_999)).as_millis() as u64),
    };
    let units: [(u128, char); 4] = [
        (left.as_nanos(), 'n'),
        (left.as_micros(), 'u'),
        (left.as_millis(), 'm'),
        (u128::from(left.as_secs()), 'S'),
    ];
    let (number, unit) =
        units.into_iter().find(|(number, _)| *number < 100_000_000).unwrap_or((99_999_999, 'S'));
    HeaderValue::from_str(&format!("{number}{unit}"))
        .unwrap_or_else(|_| HeaderValue::from_static("99999999S"))
}

/// The error of these headers, or `None` for OK and for headers without a status.
fn read_status(headers: &HeaderMap) -> Result<Option<Error>> {
    let Some(status) = tonic::Status::from_header_map(headers) else { return Ok(None) };
    if status.code() == tonic::Code::Ok {
        return Ok(None);
    }
    let code = i32::from(status.code());
    let message = if status.message().is_empty() {
        status.code().description().to_owned()
    } else {
        status.message().to_owned()
    };
    Ok(Some(Error::new(Kind::from_grpc_code(code), message).refused_by_server(code)))
}

/// The body of a response.
pub(super) enum GrpcBody {
    Incoming(Incoming),
    /// Received as a whole.
    Whole {
        data: Option<Bytes>,
        trailers: Option<Box<HeaderMap>>,
    },
}

impl GrpcBody {
    async fn frame(&mut self) -> Option<std::result::Result<Frame<Bytes>, hyper::Error>> {
        match self {
            GrpcBody::Incoming(body) => body.frame().await,
            GrpcBody::Whole { data, trailers } => {
                let data = data.take().map(Frame::data);
                data.or_else(|| trailers.take().map(|trailers| Frame::trailers(*trailers))).map(Ok)
            }
        }
    }
}

/// Takes the messages of a response out of its frames.
struct GrpcReader {
    body: GrpcBody,
    parts: VecDeque<Bytes>,
    /// Bytes in `parts`.
    have: usize,
    encoding: String,
    limit: usize,
    verbose: bool,
    /// The status was received.
    ended: bool,
}

impl GrpcReader {
    /// The next message; `None` when the RPC ended with OK.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        if !self.fill(PREFIX).await? {
            if self.have > 0 {
                return Err(Error::protocol("the response ends within the prefix of a message"));
            }
            if !self.ended {
                return Err(Error::protocol("the response ended without a gRPC status"));
            }
            return Ok(None);
        }
        let prefix = self.take(PREFIX);
        let len = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        let limit = self.limit;
        if prefix[0] > 1 {
            return Err(Error::protocol(format!(
                "the compressed flag of a message is {}, expected 0 or 1",
                prefix[0]
            )));
        }
        if len > limit {
            return Err(Error::protocol(format!(
                "the response has a message of {len} bytes, the limit is {limit} bytes"
            )));
        }
        if !self.fill(len).await? {
            return Err(Error::protocol(format!(
                "the response ends after {} bytes of a message of {len} bytes",
                self.have
            )));
        }
        let message = self.take(len);
        match prefix[0] {
            0 => Ok(Some(message)),
            _ => compress::decompress_body(&self.encoding, message, limit).map(Some),
        }
    }

    /// Reads until `len` bytes are there; false if the response ended before.
    async fn fill(&mut self, len: usize) -> Result<bool> {
        while self.have < len {
            let Some(frame) = self.body.frame().await else { return Ok(false) };
            match frame.map_err(|e| connection_error(&e))?.into_data() {
                Ok(data) => {
                    self.have += data.len();
                    self.parts.push_back(data);
                }
                Err(frame) => {
                    let Ok(trailers) = frame.into_trailers() else { continue };
                    if self.verbose {
                        verbose::print_trailers(&trailers);
                    }
                    if let Some(error) = read_status(&trailers)? {
                        return Err(error);
                    }
                    self.ended = trailers.contains_key("grpc-status");
                }
            }
        }
        Ok(true)
    }

    /// The next `len` bytes, which are there. Joined only if they came in several frames.
    fn take(&mut self, len: usize) -> Bytes {
        self.have -= len;
        while self.parts.front().is_some_and(|part| part.is_empty() && len > 0) {
            self.parts.pop_front();
        }
        match self.parts.front_mut() {
            Some(part) if part.len() >= len => part.split_to(len),
            None => Bytes::new(),
            Some(_) => {
                let mut all = BytesMut::with_capacity(len);
                while all.len() < len {
                    let Some(part) = self.parts.front_mut() else { break };
                    let count = part.len().min(len - all.len());
                    all.extend_from_slice(&part.split_to(count));
                    if part.is_empty() {
                        self.parts.pop_front();
                    }
                }
                all.freeze()
            }
        }
    }
}

/// Sends the messages of a stream. Dropping it ends the requests; outstanding responses still come.
pub(crate) struct RpcSender {
    messages: mpsc::UnboundedSender<VecDeque<Bytes>>,
    /// Closed when the stream has ended.
    backlog: Arc<Semaphore>,
    compression: Option<Compression>,
    asked: String,
}

impl RpcSender {
    /// The message has its place in the stream with the first poll; then this waits while too many
    /// are queued.
    pub async fn send(&self, message: Segments) -> Result<()> {
        let message = frame_message(message, self.compression)?;
        let closed = || {
            Error::new(Kind::Connection, "Stream has been closed.")
                .with_asked(|| self.asked.clone())
        };
        // A message would be accepted until the connection's task knows of the end.
        if self.backlog.is_closed() {
            return Err(closed());
        }
        self.messages.send(message).map_err(|_| closed())?;
        tokio::select! {
            permit = self.backlog.acquire() => permit.map_err(|_| closed())?.forget(),
            () = self.messages.closed() => return Err(closed()),
        }
        Ok(())
    }
}

/// Receives the messages of a stream. Dropping it cancels the stream.
pub(crate) struct RpcReceiver {
    /// That of the sender.
    backlog: Arc<Semaphore>,
    transport: Arc<ClientTransport>,
    asked: String,
    state: StreamState,
}

enum StreamState {
    Opening(Responding),
    Reading(GrpcReader),
    Ended,
}

impl RpcReceiver {
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// The next message; `None` after the last one. After an error the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let result = self.advance().await;
        if !matches!(result, Ok(Some(_))) {
            self.state = StreamState::Ended;
            self.backlog.close();
        }
        result.map_err(|e| {
            self.transport.forget_broken(&e);
            e.with_asked(|| self.asked.clone())
        })
    }

    async fn advance(&mut self) -> Result<Option<Bytes>> {
        loop {
            match &mut self.state {
                StreamState::Opening(responding) => {
                    let response = responding.await?;
                    self.state = StreamState::Reading(
                        self.transport.reader(response.map(GrpcBody::Incoming))?,
                    );
                }
                StreamState::Reading(reader) => return reader.next().await,
                StreamState::Ended => return Ok(None),
            }
        }
    }
}
