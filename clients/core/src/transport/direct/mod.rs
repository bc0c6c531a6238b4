//! Calls on the calling thread: a request and its response over a blocking socket, without tasks
//! and wake-ups.
//!
//! The blocking clients make small calls this way; hyper makes all others. A call of a blocking
//! client is one future that moves between two places ([`turn`]): it exchanges bytes on the calling
//! thread, and opens connections in the runtime.

mod call_thread;
mod http1;
mod http2;
mod socket;
mod spin;

pub(crate) use call_thread::{enter_runtime, run_call};

use super::connect::SocketConnector;
use super::grpc::{GrpcBody, GrpcCall};
use super::http::{HttpExchange, HttpResponse};
use super::{CallTiming, ClientTransport, deadline_exceeded, within_deadline};
use crate::error::{Error, Kind, Result};
use crate::sync::Mutex;
use bytes::Bytes;
use http::Response;
use socket::{DirectChannel, Socket, SocketProblem};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Larger requests are sent by hyper, which reads while it writes and does not copy tensors.
const MAX_REQUEST: usize = 64 << 10;
/// Idle connections that are kept.
const MAX_IDLE: usize = 64;

/// The connections of a blocking client that are used on calling threads, each by one thread at a
/// time.
#[derive(Default)]
pub(super) struct DirectTransport {
    http1: IdleConnections<http1::Http1Connection>,
    http2: IdleConnections<http2::Http2Connection>,
    open: Mutex<Vec<Weak<Socket>>>,
}

/// Idle connections, the last used on top.
struct IdleConnections<C>(Mutex<Vec<C>>);

impl<C> Default for IdleConnections<C> {
    fn default() -> Self {
        IdleConnections(Mutex::default())
    }
}

/// Why an exchange failed, and whether the request may be sent again.
struct CallFailure {
    error: Error,
    sent: SentState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SentState {
    /// The server has processed nothing of it.
    No,
    /// The server may have received it; no byte of a response has arrived.
    Perhaps,
    /// The response began, or the deadline passed.
    Yes,
}

/// A connection that is not in use may be closed by the server at any time.
trait ReusableConnection {
    /// Whether the connection was left in order by its last call.
    fn is_reusable(&self) -> bool;

    /// Looks at the socket: false if the server has closed the connection.
    fn is_open(&mut self) -> bool;
}

impl<C: ReusableConnection> IdleConnections<C> {
    fn take(&self) -> Option<C> {
        loop {
            let mut connection = self.0.lock().pop()?;
            if connection.is_open() {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: C) {
        let mut idle = self.0.lock();
        if connection.is_reusable() && idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }
}

impl DirectTransport {
    /// Ends every connection, also in the middle of a call.
    pub fn abort(&self) {
        self.http1.0.lock().clear();
        self.http2.0.lock().clear();
        self.open
            .lock()
            .drain(..)
            .filter_map(|socket| socket.upgrade())
            .for_each(|s| s.shut_down());
    }

    /// Connects in the runtime, and returns to the calling thread.
    async fn connect(
        &self,
        connector: &SocketConnector,
        deadline: Option<Instant>,
    ) -> Result<DirectChannel> {
        enter_runtime().await;
        let plain = within_deadline(deadline, connector.connect_plain()).await?;
        let socket = Arc::new(Socket::new(plain)?);
        call_thread::leave_runtime().await;
        let mut open = self.open.lock();
        open.retain(|socket| socket.strong_count() > 0);
        open.push(Arc::downgrade(&socket));
        Ok(DirectChannel::new(socket))
    }
}

impl ClientTransport {
    /// The direct connections, if a call with this many bytes may use them.
    fn direct(&self, bytes: usize) -> Option<&DirectTransport> {
        self.direct.as_ref().filter(|_| bytes <= MAX_REQUEST && call_thread::is_on_calling_thread())
    }

    pub(super) fn is_direct(&self, bytes: usize) -> bool {
        self.direct(bytes).is_some()
    }

    /// As [`ClientTransport::exchange`] on a direct connection.
    pub(super) async fn exchange_direct(&self, exchange: HttpExchange<'_>) -> Result<HttpResponse> {
        let Some(direct) = &self.direct else { return Err(Self::no_http()) };
        let start = Instant::now();
        let (deadline, may_repeat) = (exchange.deadline, exchange.method == http::Method::GET);
        let limit = self.max_response_bytes;
        let request = http1::encode(exchange, &self.address, &self.headers)?;
        loop {
            let kept = direct.http1.take();
            let is_kept = kept.is_some();
            let mut connection = match kept {
                Some(connection) => connection,
                None => {
                    http1::Http1Connection::new(direct.connect(self.connector(), deadline).await?)
                }
            };
            match connection.exchange(&request, deadline, limit) {
                Ok(answer) => {
                    direct.http1.keep(connection);
                    let timing = CallTiming {
                        start,
                        sent: answer.sent,
                        first_byte: answer.first_byte,
                        end: Instant::now(),
                    };
                    let http1::Http1Response { status, headers, body, .. } = answer;
                    return Ok(HttpResponse { status, headers, body, timing });
                }
                Err(failure) => failure.unless_repeatable(is_kept, may_repeat, deadline, start)?,
            }
        }
    }

    /// Sends a framed message on a direct connection; returns the whole response.
    pub(super) async fn call_direct(
        &self,
        rpc: &GrpcCall<'_>,
        message: &VecDeque<Bytes>,
    ) -> Result<Response<GrpcBody>> {
        let Some(direct) = &self.direct else { return Err(Self::no_grpc()) };
        let start = Instant::now();
        let fields = http2::Fields::new(rpc, &self.connector().authority);
        loop {
            let kept = direct.http2.take();
            let is_kept = kept.is_some();
            let mut connection = match kept {
                Some(connection) => connection,
                None => {
                    let channel = direct.connect(self.connector(), rpc.deadline).await?;
                    http2::Http2Connection::new(channel)
                }
            };
            match connection.call(&fields, &self.headers, message, self.max_response_bytes) {
                Ok(response) => {
                    direct.http2.keep(connection);
                    return Ok(response);
                }
                Err(failure) => failure.unless_repeatable(is_kept, false, rpc.deadline, start)?,
            }
        }
    }
}

impl CallFailure {
    fn new(sent: SentState, error: Error) -> Self {
        Self { error, sent }
    }

    /// Success means that the request is sent again on another connection.
    fn unless_repeatable(
        self,
        kept: bool,
        may_repeat: bool,
        deadline: Option<Instant>,
        start: Instant,
    ) -> Result<()> {
        let again = match self.sent {
            SentState::No => kept,
            SentState::Perhaps => kept && may_repeat,
            SentState::Yes => false,
        };
        if again && deadline.is_none_or(|at| Instant::now() < at) {
            return Ok(());
        }
        if self.error.kind() == Kind::DeadlineExceeded {
            return Err(deadline_exceeded(start));
        }
        Err(self.error)
    }
}

/// What errors say when the server closed the connection too early.
fn closed() -> Error {
    let text = "the server closed the connection before the response was complete";
    Error::new(Kind::Connection, text)
}

fn to_error(problem: SocketProblem) -> Error {
    match problem {
        // Its text is made where the start of the call is known.
        SocketProblem::DeadlinePassed => Error::new(Kind::DeadlineExceeded, ""),
        SocketProblem::Errno(errno) => broken(errno),
    }
}

fn broken(error: rustix::io::Errno) -> Error {
    let error = std::io::Error::from(error);
    Error::new(Kind::Connection, format!("the connection broke: {error}"))
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
