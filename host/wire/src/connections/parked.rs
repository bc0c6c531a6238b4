//! An HTTP/1 connection without hyper's buffers while it is idle.
//!
//! hyper allocates 8 KiB for heads of responses and 8 KiB for what it reads, and keeps them while a
//! connection is open. So the task that looks at all connections asks those that have been idle for
//! a while to park: hyper's connection is taken apart, and only the socket, the state and the
//! service stay. As soon as the socket is readable, hyper's connection is made anew and reads.
//!
//! A new connection without TLS begins in this way, so that what stays lies together in memory, and
//! whole pages are free once buffers are: the allocator gives no other memory back to the system.

use super::guarded::GuardedConnection;
use super::state::{Order, Phase, Wire};
use super::{ConnectionEntry, ConnectionState};
use crate::disconnect::{DisconnectWatch, WatchedConnection};
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

type Http1Connection<S> = http1::Connection<TokioIo<WatchedConnection>, S>;

/// A connection `C` of hyper with the service `S` that obeys orders, and parks when it is asked to.
/// Ends as [`GuardedConnection`] does.
pub struct ParkingConnection<C, S> {
    activity: Activity<C, S>,
    watch: DisconnectWatch,
    /// Orders wake the task.
    registered: bool,
}

enum Activity<C, S> {
    Served(Box<GuardedConnection<C>>),
    Parked(ParkedConnection<S>),
    Ended,
}

// Nothing in it is pinned.
impl<C, S> Unpin for ParkingConnection<C, S> {}

/// What an idle connection needs.
struct ParkedConnection<S> {
    io: WatchedConnection,
    service: S,
    entry: ConnectionEntry,
}

impl<S, B> ParkingConnection<Http1Connection<S>, S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    pub fn new(
        io: WatchedConnection,
        watch: DisconnectWatch,
        service: S,
        entry: ConnectionEntry,
    ) -> Self {
        let serves = io.may_hold_request();
        let parked = ParkedConnection { io, service, entry };
        let activity = match serves {
            true => Activity::Served(parked.serve()),
            false => {
                parked.entry.state().set_parking(Parking::Parked);
                Activity::Parked(parked)
            }
        };
        Self { activity, watch, registered: false }
    }
}

impl<S, B> ParkedConnection<S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn serve(self) -> Box<GuardedConnection<Http1Connection<S>>> {
        let mut builder = http1::Builder::new();
        // `half_close`: hyper must not detect disconnects, `DisconnectWatch` does.
        let connection =
            builder.half_close(true).serve_connection(TokioIo::new(self.io), self.service);
        Box::new(GuardedConnection::new(connection, self.entry))
    }

    /// Takes an idle connection apart. What hyper has read and not used is read again.
    fn park(connection: GuardedConnection<Http1Connection<S>>) -> Self {
        let (connection, entry) = connection.into_parts();
        let parts = connection.into_parts();
        let mut io = parts.io.into_inner();
        io.put_back(&parts.read_buf);
        Self { io, service: parts.service, entry }
    }

    /// Ready when hyper has to read, or with the end of the connection.
    fn poll_wanted(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Option<hyper::Result<()>>>> {
        match self.entry.state().ordered() {
            ordered if ordered == Order::Close as u8 => Poll::Ready(Err(None)),
            // Nothing is in progress, so the connection ends at once.
            ordered if ordered == Order::Finish as u8 => {
                let _ = ready!(Pin::new(&mut self.io).poll_shutdown(cx));
                Poll::Ready(Err(Some(Ok(()))))
            }
            _ => self.io.poll_readable(cx).map(Ok),
        }
    }
}

impl<S, B> Future for ParkingConnection<Http1Connection<S>, S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Output = Option<hyper::Result<()>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            match &mut this.activity {
                Activity::Served(connection) => {
                    let polled = Pin::new(&mut **connection).poll(cx);
                    if polled.is_ready() || !connection.state().is_asked_to_park() {
                        return polled;
                    }
                    connection.state().set_parking(Parking::Active);
                    if !this.watch.is_idle() {
                        return polled;
                    }
                }
                Activity::Parked(parked) => {
                    if !this.registered {
                        // Before the order is read: one that comes later finds the waker.
                        parked.entry.state().set_waker(cx.waker().clone());
                        this.registered = true;
                    }
                    let wanted = ready!(parked.poll_wanted(cx));
                    parked.entry.state().set_parking(Parking::Active);
                    if let Err(ended) = wanted {
                        return Poll::Ready(ended);
                    }
                }
                Activity::Ended => return Poll::Ready(None),
            }
            this.activity = match std::mem::replace(&mut this.activity, Activity::Ended) {
                Activity::Served(connection) => {
                    let parked = ParkedConnection::park(*connection);
                    match parked.io.is_quiet() {
                        true => {
                            parked.entry.state().set_parking(Parking::Parked);
                            Activity::Parked(parked)
                        }
                        false => Activity::Served(parked.serve()),
                    }
                }
                Activity::Parked(parked) => Activity::Served(parked.serve()),
                Activity::Ended => Activity::Ended,
            };
        }
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
