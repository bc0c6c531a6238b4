//! Calls on the calling thread: a request and its response over a blocking socket, without tasks and wake-ups.
//!
//! The blocking clients make small calls this way; hyper makes all others. A call of a blocking client is one future that moves
//! between two places ([`turn`]): it exchanges bytes on the calling thread, and opens connections in the runtime.

mod http1;
mod http2;
mod socket;
mod spin;
mod turn;

pub(crate) use turn::{enter_runtime, run};

use super::connect::Connector;
use super::grpc::{Body, Rpc};
use super::http::{Exchange, Received};
use super::{Timing, Transport, deadline_exceeded, within};
use crate::error::{Error, Kind, Result};
use crate::sync::Mutex;
use bytes::Bytes;
use http::Response;
use socket::{Channel, Problem, Socket};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Larger requests are sent by hyper, which reads while it writes and does not copy tensors.
const MAX_REQUEST: usize = 64 << 10;
/// Idle connections that are kept.
const MAX_IDLE: usize = 64;

/// The connections of a blocking client that are used on calling threads, each by one thread at a time.
#[derive(Default)]
pub(super) struct Direct {
    http1: Idle<http1::Connection>,
    http2: Idle<http2::Connection>,
    open: Mutex<Vec<Weak<Socket>>>,
}

/// Idle connections, the last used on top.
struct Idle<C>(Mutex<Vec<C>>);

impl<C> Default for Idle<C> {
    fn default() -> Self {
        Idle(Mutex::default())
    }
}

/// Why an exchange failed, and whether the request may be sent again.
struct Failure {
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
trait Reusable {
    /// Whether the connection was left in order by its last call.
    fn is_reusable(&self) -> bool;

    /// Looks at the socket: false if the server has closed the connection.
    fn is_open(&mut self) -> bool;
}

impl<C: Reusable> Idle<C> {
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

impl Direct {
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
    async fn connect(&self, connector: &Connector, deadline: Option<Instant>) -> Result<Channel> {
        enter_runtime().await;
        let plain = within(deadline, connector.connect_plain()).await?;
        let socket = Arc::new(Socket::new(plain)?);
        turn::leave_runtime().await;
        let mut open = self.open.lock();
        open.retain(|socket| socket.strong_count() > 0);
        open.push(Arc::downgrade(&socket));
        Ok(Channel::new(socket))
    }
}

impl Transport {
    /// The direct connections, if a call with this many bytes may use them.
    fn direct(&self, bytes: usize) -> Option<&Direct> {
        self.direct.as_ref().filter(|_| bytes <= MAX_REQUEST && turn::is_on_calling_thread())
    }

    pub(super) fn is_direct(&self, bytes: usize) -> bool {
        self.direct(bytes).is_some()
    }

    /// As [`Transport::exchange`] on a direct connection.
    pub(super) async fn exchange_direct(&self, exchange: Exchange<'_>) -> Result<Received> {
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
                None => http1::Connection::new(direct.connect(self.connector(), deadline).await?),
            };
            match connection.exchange(&request, deadline, limit) {
                Ok(answer) => {
                    direct.http1.keep(connection);
                    let timing = Timing {
                        start,
                        sent: answer.sent,
                        first_byte: answer.first_byte,
                        end: Instant::now(),
                    };
                    let http1::Answer { status, headers, body, .. } = answer;
                    return Ok(Received { status, headers, body, timing });
                }
                Err(failure) => failure.unless_repeatable(is_kept, may_repeat, deadline, start)?,
            }
        }
    }

    /// Sends a framed message on a direct connection; returns the whole response.
    pub(super) async fn call_direct(
        &self,
        rpc: &Rpc<'_>,
        message: &VecDeque<Bytes>,
    ) -> Result<Response<Body>> {
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
                    http2::Connection::new(channel)
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

impl Failure {
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

fn error_of(problem: Problem) -> Error {
    match problem {
        // Its text is made where the start of the call is known.
        Problem::DeadlinePassed => Error::new(Kind::DeadlineExceeded, ""),
        Problem::Errno(errno) => broken(errno),
    }
}

fn broken(error: rustix::io::Errno) -> Error {
    let error = std::io::Error::from(error);
    Error::new(Kind::Connection, format!("the connection broke: {error}"))
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
