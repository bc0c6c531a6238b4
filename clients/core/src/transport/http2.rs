//! The HTTP/2 connection of a gRPC client: opened at the first call, replaced when it was closed.

use super::body::RequestBody;
use super::connect::SocketConnector;
use super::{ConnectionTasks, notice_close};
use crate::error::{Error, Kind, Result, innermost_error};
use crate::sync::Mutex;
use http::Request;
use hyper::client::conn::http2;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::time::{Duration, Instant};

/// Receive windows: large responses are not slowed down by window updates.
const WINDOW: u32 = 16 << 20;
const MAX_FRAME: u32 = 1 << 20;
const MAX_HEADERS: u32 = 1 << 20;

pub(super) struct Http2 {
    pub connector: SocketConnector,
    current: Mutex<Option<CurrentConnection>>,
    /// Held while a connection is opened: calls at the same time share it.
    opening: tokio::sync::Mutex<()>,
    tasks: ConnectionTasks,
}

struct CurrentConnection {
    sender: SendRequest<RequestBody>,
    used: Instant,
}

/// The response, once its headers are there.
pub(super) type Responding =
    std::pin::Pin<Box<dyn Future<Output = Result<http::Response<hyper::body::Incoming>>> + Send>>;

impl Http2 {
    pub fn new(connector: SocketConnector) -> Self {
        Self {
            connector,
            current: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            tasks: ConnectionTasks::default(),
        }
    }

    pub fn abort(&self) {
        *self.current.lock() = None;
        self.tasks.abort();
    }

    /// The next call opens a connection: this one broke, although its task may not have ended yet.
    pub fn forget(&self) {
        *self.current.lock() = None;
    }

    /// Sends a request and waits for the head of its response. A connection that was closed before
    /// it took the request is replaced.
    pub async fn send(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<http::Response<hyper::body::Incoming>> {
        loop {
            let (mut sender, kept) = self.sender().await?;
            let mut error = match sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            match error.take_message() {
                Some(unsent) if kept => request = unsent,
                _ => return Err(connection_error(error.error())),
            }
        }
    }

    /// Sends a request whose body is still being written.
    pub async fn open(&self, request: Request<RequestBody>) -> Result<Responding> {
        let (mut sender, _) = self.sender().await?;
        let response = sender.send_request(request);
        Ok(Box::pin(async move { response.await.map_err(|e| connection_error(&e)) }))
    }

    /// The open connection, and for how long it was idle.
    fn kept(&self) -> Option<(SendRequest<RequestBody>, Duration)> {
        let mut current = self.current.lock();
        let current = current.as_mut().filter(|current| !current.sender.is_closed())?;
        let idle = current.used.elapsed();
        current.used = Instant::now();
        Some((current.sender.clone(), idle))
    }

    async fn sender(&self) -> Result<(SendRequest<RequestBody>, bool)> {
        if let Some((mut sender, idle)) = self.kept() {
            notice_close(idle).await;
            if sender.ready().await.is_ok() && !sender.is_closed() {
                return Ok((sender, true));
            }
        }
        let _opening = self.opening.lock().await;
        if let Some((sender, _)) = self.kept() {
            return Ok((sender, false));
        }
        let io = TokioIo::new(self.connector.connect().await?);
        let (sender, connection) = http2::Builder::new(self.tasks.clone())
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_frame_size(MAX_FRAME)
            .max_header_list_size(MAX_HEADERS)
            .handshake(io)
            .await
            .map_err(|e| connection_error(&e))?;
        self.tasks.spawn(async move {
            let _ = connection.await;
        });
        let used = Instant::now();
        *self.current.lock() = Some(CurrentConnection { sender: sender.clone(), used });
        Ok((sender, false))
    }
}

pub(super) fn connection_error(error: &hyper::Error) -> Error {
    let cause = innermost_error(error);
    if cause.contains("protocol error") || cause.contains("frame with invalid") {
        return Error::protocol(format!("the response is not HTTP/2: {cause}"));
    }
    if error.is_closed() || error.is_canceled() || error.is_incomplete_message() {
        let text = "the server closed the connection before the response was complete";
        return Error::new(Kind::Connection, text);
    }
    Error::new(Kind::Connection, format!("the connection broke: {cause}"))
}
