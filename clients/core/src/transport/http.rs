//! HTTP/1.1: one request, its whole response, and the connections kept between them.

use super::body::{RequestBody, Segments, Sent};
use super::connect::{AsyncSocket, SocketConnector};
use super::direct::enter_runtime;
use super::{
    CallTiming, ClientTransport, ConnectionTasks, Connections, notice_close, verbose,
    within_deadline,
};
use crate::error::{Error, Kind, Result, innermost_error};
use crate::sync::Mutex;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, Version};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::sync::OnceLock;
use std::time::Instant;
use tokio::task::AbortHandle;

/// Idle connections that are kept.
const MAX_IDLE: usize = 64;
/// Memory that is allocated on the word of a Content-Length.
pub(super) const TRUSTED_LENGTH: usize = 64 << 20;
/// Head of a response: v1 puts the description of all outputs into a header.
pub(super) const MAX_HEAD: usize = 8 << 20;

/// One request, without what every request of the client has.
pub(crate) struct HttpExchange<'a> {
    pub method: Method,
    /// Path and query below the prefix of the URL.
    pub path: &'a str,
    pub headers: HeaderMap,
    pub content_type: Option<&'static str>,
    pub body: Segments,
    pub deadline: Option<Instant>,
}

impl<'a> HttpExchange<'a> {
    pub fn get(path: &'a str, deadline: Option<Instant>) -> Self {
        Self::new(Method::GET, path, Segments::default(), deadline)
    }

    pub fn post(path: &'a str, body: Segments, deadline: Option<Instant>) -> Self {
        Self::new(Method::POST, path, body, deadline)
    }

    fn new(method: Method, path: &'a str, body: Segments, deadline: Option<Instant>) -> Self {
        Self { method, path, headers: HeaderMap::new(), content_type: None, body, deadline }
    }
}

pub(crate) struct HttpResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub timing: CallTiming,
}

impl HttpResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl ClientTransport {
    /// What errors say was asked.
    pub fn asked_http(&self, method: &Method, path: &str) -> String {
        format!("{method} {}{path}", self.address.shown)
    }

    /// Sends a request and reads the response, whatever its status.
    pub async fn exchange(&self, exchange: HttpExchange<'_>) -> Result<HttpResponse> {
        let (method, path) = (exchange.method.clone(), exchange.path);
        let deadline = exchange.deadline;
        let received = if self.is_direct(exchange.body.len()) {
            self.exchange_direct(exchange).await
        } else {
            enter_runtime().await;
            within_deadline(deadline, self.exchange_now(exchange)).await
        };
        received.map_err(|e| e.with_asked(|| self.asked_http(&method, path)))
    }

    async fn exchange_now(&self, exchange: HttpExchange<'_>) -> Result<HttpResponse> {
        let Connections::Http(pool) = &self.connections else { return Err(Self::no_http()) };
        let start = Instant::now();
        let sent = Sent::new(OnceLock::new());
        let may_repeat = exchange.method == Method::GET;
        let request = self.request(exchange, &sent)?;
        if self.verbose {
            let path = request.uri().path_and_query().map_or("", |p| p.as_str());
            let method = request.method().as_str();
            verbose::print_request(method, path, Version::HTTP_11, request.headers());
        }
        let (response, connection) = pool.send(request, may_repeat).await?;
        let first_byte = Instant::now();
        let (head, body) = response.into_parts();
        if self.verbose {
            verbose::print_response(head.version, head.status, &head.headers);
        }
        let body = read_body(body, self.max_response_bytes).await?;
        pool.put_back(connection);
        let end = Instant::now();
        let sent = sent.get().copied().unwrap_or(start);
        let timing = CallTiming { start, sent, first_byte, end };
        Ok(HttpResponse { status: head.status.as_u16(), headers: head.headers, body, timing })
    }

    fn request(&self, exchange: HttpExchange<'_>, sent: &Sent) -> Result<Request<RequestBody>> {
        let uri = format!("{}{}", self.address.prefix, exchange.path);
        let mut request = Request::builder()
            .method(exchange.method)
            .uri(&uri)
            .body(RequestBody::whole(exchange.body, Some(sent.clone())))
            .map_err(|e| Error::invalid(format!("`{uri}` is not a path: {e}")))?;
        let headers = request.headers_mut();
        *headers = exchange.headers;
        if let Some(value) = exchange.content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
        }
        for (name, value) in &self.headers {
            headers.append(name.clone(), value.clone());
        }
        let authority = HeaderValue::from_str(&self.address.authority)
            .map_err(|_| Error::invalid("the host is not text for a header"))?;
        headers.entry(HOST).or_insert(authority);
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(super::grpc::AGENT));
        Ok(request)
    }
}

/// A header whose value the client made. Values with control characters are refused.
pub(crate) fn put_header(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<()> {
    let value = HeaderValue::from_str(value)
        .map_err(|_| Error::invalid(format!("`{value}` cannot be sent in the header {name}")))?;
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

/// Reads the whole body. One frame, and with it every tensor inside, is returned as it was
/// received.
async fn read_body(mut body: Incoming, limit: usize) -> Result<Bytes> {
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(too_large(announced, limit));
    }
    let mut first = Bytes::new();
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|e| connection_error(&e))?.into_data() else { continue };
        let total = first.len() + all.len() + data.len();
        if total > limit {
            return Err(too_large(total as u64, limit));
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve((announced as usize).min(TRUSTED_LENGTH).max(total));
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

pub(super) fn too_large(bytes: u64, limit: usize) -> Error {
    Error::protocol(format!("the response has {bytes} bytes, the limit is {limit} bytes"))
}

fn connection_error(error: &hyper::Error) -> Error {
    if error.is_parse() {
        return Error::protocol(format!("the response is not HTTP: {error}"));
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        let text = "the server closed the connection before the response was complete";
        return Error::new(Kind::Connection, text);
    }
    Error::new(Kind::Connection, format!("the connection broke: {}", innermost_error(error)))
}

/// Idle connections, the last used on top.
pub(super) struct ConnectionPool {
    pub connector: SocketConnector,
    idle: Mutex<Vec<PooledConnection>>,
    tasks: ConnectionTasks,
}

struct PooledConnection {
    sender: http1::SendRequest<RequestBody>,
    used: Instant,
    task: AbortHandle,
}

/// Ends a connection that is dropped in the middle of an exchange, and with it the request.
impl Drop for PooledConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ConnectionPool {
    pub fn new(connector: SocketConnector) -> Self {
        Self { connector, idle: Mutex::default(), tasks: ConnectionTasks::default() }
    }

    pub fn abort(&self) {
        self.idle.lock().clear();
        self.tasks.abort();
    }

    /// Sends the request, on a new connection if a kept one turns out to be closed before the
    /// request was written. If the response fails to come on a kept connection, only requests that
    /// change nothing are sent again.
    async fn send(
        &self,
        mut request: Request<RequestBody>,
        may_repeat: bool,
    ) -> Result<(Response<Incoming>, PooledConnection)> {
        loop {
            let (mut connection, kept) = self.checkout().await?;
            let copy = may_repeat.then(|| clone_request(&request));
            let mut error = match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(error) => error,
            };
            match (error.take_message(), copy) {
                (Some(unsent), _) if kept => request = unsent,
                (None, Some(copy)) if kept && !error.error().is_parse() => request = copy,
                _ => return Err(connection_error(error.error())),
            }
        }
    }

    async fn checkout(&self) -> Result<(PooledConnection, bool)> {
        loop {
            let kept = self.idle.lock().pop();
            let Some(mut connection) = kept else { break };
            notice_close(connection.used.elapsed()).await;
            if connection.sender.ready().await.is_ok() && !connection.sender.is_closed() {
                return Ok((connection, true));
            }
        }
        Ok((self.connect().await?, false))
    }

    async fn connect(&self) -> Result<PooledConnection> {
        let io: TokioIo<Box<dyn AsyncSocket>> = TokioIo::new(self.connector.connect().await?);
        let (mut sender, task) = http1::Builder::new()
            .max_header_size(MAX_HEAD)
            .max_buf_size(MAX_HEAD)
            .handshake(io)
            .await
            .map_err(|e| connection_error(&e))?;
        let task = self.tasks.spawn(async move {
            let _ = task.await;
        });
        sender.ready().await.map_err(|e| connection_error(&e))?;
        Ok(PooledConnection { sender, used: Instant::now(), task })
    }

    fn put_back(&self, mut connection: PooledConnection) {
        if connection.sender.is_closed() {
            return;
        }
        connection.used = Instant::now();
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }
}

/// The same request without a body.
fn clone_request(request: &Request<RequestBody>) -> Request<RequestBody> {
    let mut copy = Request::new(RequestBody::whole(Segments::default(), None));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}
