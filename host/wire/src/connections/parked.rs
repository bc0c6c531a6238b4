//! An HTTP/1 connection without hyper's buffers while it is idle.
//!
//! hyper allocates 8 KiB for heads of responses and 8 KiB for what it reads, and keeps them while a
//! connection is open. So the task that looks at all connections asks those that have been idle for
//! a while to park: hyper's connection is taken apart, and only the socket and the state stay. As
//! soon as the socket is readable, hyper's connection and its service are made anew.
//!
//! A new connection without TLS begins in this way, so that what stays lies together in memory, and
//! whole pages are free once buffers are: the allocator gives no other memory back to the system.

use super::guarded::{CLOSED_BY_ORDER, GuardedConnection};
use super::state::{Order, Phase, Wire};
use super::{ConnectionEntry, ConnectionState};
use crate::disconnect::{DisconnectWatch, WatchedConnection};
use crate::socket::SocketStream;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use trtserver_base::heap;

/// hyper's connection with the service `S`.
pub type Http1Connection<S> = http1::Connection<TokioIo<WatchedConnection>, S>;

/// A connection `C` of hyper that obeys orders, and parks when it is asked to. `F` makes its
/// service. Ends as [`GuardedConnection`] does, and when the client has disconnected while a request
/// was executed.
pub struct ParkingConnection<C, F> {
    activity: Activity<C>,
    make_service: F,
    /// Orders wake the task.
    registered: bool,
}

enum Activity<C> {
    Served(Box<GuardedConnection<C>>),
    Parked(SocketStream, ConnectionEntry),
    Ended,
}

/// Why a connection has ended.
enum ConnectionEnd {
    Hyper(hyper::Result<()>),
    Ordered,
    Disconnected,
}

// Nothing in it is pinned.
impl<C, F> Unpin for ParkingConnection<C, F> {}

impl<S, F, B> ParkingConnection<Http1Connection<S>, F>
where
    F: Fn(DisconnectWatch) -> S,
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    pub fn new(stream: SocketStream, make_service: F, entry: ConnectionEntry) -> Self {
        let activity = Activity::Ended;
        let mut this = Self { activity, make_service, registered: false };
        this.activity = match stream.may_hold_request() {
            true => this.serve(stream, entry),
            false => Activity::park(stream, entry),
        };
        this
    }

    fn serve(&self, stream: SocketStream, entry: ConnectionEntry) -> Activity<Http1Connection<S>> {
        let watch = DisconnectWatch::new(entry.state());
        self.serve_watched(WatchedConnection::new(stream, watch), entry)
    }

    fn serve_watched(
        &self,
        io: WatchedConnection,
        entry: ConnectionEntry,
    ) -> Activity<Http1Connection<S>> {
        let service = (self.make_service)(DisconnectWatch::new(entry.state()));
        let mut builder = http1::Builder::new();
        // `half_close`: hyper must not detect disconnects, `DisconnectWatch` does.
        let connection = builder.half_close(true).serve_connection(TokioIo::new(io), service);
        Activity::Served(Box::new(GuardedConnection::new(connection, entry)))
    }

    /// Takes an idle connection apart. What hyper has read and not used is read again.
    fn park(
        &self,
        connection: GuardedConnection<Http1Connection<S>>,
    ) -> Activity<Http1Connection<S>> {
        let (connection, entry) = connection.into_parts();
        let parts = connection.into_parts();
        let mut io = parts.io.into_inner();
        io.put_back(&parts.read_buf);
        match io.is_quiet() {
            true => Activity::park(io.into_stream(), entry),
            false => self.serve_watched(io, entry),
        }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        loop {
            match &mut self.activity {
                Activity::Served(connection) => {
                    let polled = Pin::new(&mut **connection).poll(cx);
                    if let Poll::Ready(ended) = polled {
                        let end = ended.map_or(ConnectionEnd::Ordered, ConnectionEnd::Hyper);
                        return Poll::Ready(end);
                    }
                    let state = connection.state();
                    if state.client.is_disconnected() {
                        return Poll::Ready(ConnectionEnd::Disconnected);
                    }
                    if !state.is_asked_to_park() {
                        return Poll::Pending;
                    }
                    state.set_parking(Parking::Active);
                    if state.phase() != Phase::Idle || state.client.has_response() {
                        return Poll::Pending;
                    }
                }
                Activity::Parked(stream, entry) => {
                    if !self.registered {
                        // Before the order is read: one that comes later finds the waker.
                        entry.state().set_waker(cx.waker().clone());
                        self.registered = true;
                    }
                    let wanted = ready!(poll_wanted(stream, entry, cx));
                    entry.state().set_parking(Parking::Active);
                    if let Err(ended) = wanted {
                        return Poll::Ready(ended);
                    }
                }
                Activity::Ended => return Poll::Ready(ConnectionEnd::Ordered),
            }
            self.activity = match std::mem::replace(&mut self.activity, Activity::Ended) {
                Activity::Served(connection) => self.park(*connection),
                Activity::Parked(stream, entry) => self.serve(stream, entry),
                Activity::Ended => Activity::Ended,
            };
        }
    }
}

impl<C> Activity<C> {
    fn park(stream: SocketStream, entry: ConnectionEntry) -> Self {
        entry.state().set_parking(Parking::Parked);
        Self::Parked(stream, entry)
    }
}

/// Ready when hyper has to read, or with the end of the connection.
fn poll_wanted(
    stream: &mut SocketStream,
    entry: &ConnectionEntry,
    cx: &mut Context<'_>,
) -> Poll<Result<(), ConnectionEnd>> {
    match entry.state().ordered() {
        ordered if ordered == Order::Close as u8 => Poll::Ready(Err(ConnectionEnd::Ordered)),
        // Nothing is in progress, so the connection ends at once.
        ordered if ordered == Order::Finish as u8 => {
            let _ = ready!(Pin::new(stream).poll_shutdown(cx));
            Poll::Ready(Err(ConnectionEnd::Hyper(Ok(()))))
        }
        _ => stream.poll_readable(cx).map(Ok),
    }
}

impl<S, F, B> Future for ParkingConnection<Http1Connection<S>, F>
where
    F: Fn(DisconnectWatch) -> S,
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match ready!(self.poll_end(cx)) {
            ConnectionEnd::Hyper(Ok(())) => {}
            ConnectionEnd::Hyper(Err(e)) => tracing::debug!("HTTP connection ended: {e}"),
            ConnectionEnd::Ordered => tracing::debug!("HTTP connection ended: {CLOSED_BY_ORDER}"),
            ConnectionEnd::Disconnected => {
                tracing::debug!("HTTP connection ended: the client disconnected");
            }
        }
        heap::trim_soon();
        Poll::Ready(())
    }
}

/// Whether a connection is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Parking {
    Active,
    /// It parks when it is polled next, if it is idle then.
    Asked,
    Parked,
}

impl ConnectionState {
    /// Asks an HTTP/1 connection that has been idle for a while to park. True if it was.
    pub(super) fn park_if_idle(&self, now: u64) -> bool {
        let idle = self.wire == Wire::Http1
            && self.phase() == Phase::Idle
            && now.saturating_sub(self.since_ms()) >= PARK_AFTER_MS;
        idle && self.ask_to_park()
    }
}

/// How long a connection has to be idle. Making hyper's connection anew takes a microsecond.
const PARK_AFTER_MS: u64 = 1000;

#[cfg(test)]
#[path = "parked_tests.rs"]
mod tests;
