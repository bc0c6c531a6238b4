//! A connection that obeys orders.

use super::state::{Order, Wire};
use super::{ConnectionEntry, ConnectionState};
use crate::yields;
use hyper_util::server::graceful::GracefulConnection;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Why the server has closed a connection that was ordered to close, for the log.
pub const CLOSED_BY_ORDER: &str = "closed at a timeout or at the limit of connections";

pin_project_lite::pin_project! {
    /// Ends when the connection does, or `None` when it is ordered to close. Its task must poll it
    /// with wakers that all wake the same task.
    pub struct GuardedConnection<C> {
        #[pin]
        connection: C,
        entry: ConnectionEntry,
        registered: bool,
        obeyed: u8,
    }
}

impl<C> GuardedConnection<C> {
    pub fn new(connection: C, entry: ConnectionEntry) -> Self {
        Self { connection, entry, registered: false, obeyed: Order::None as u8 }
    }

    pub(super) fn state(&self) -> &Arc<ConnectionState> {
        self.entry.state()
    }

    pub(super) fn into_parts(self) -> (C, ConnectionEntry) {
        (self.connection, self.entry)
    }
}

impl<C: GracefulConnection> Future for GuardedConnection<C> {
    type Output = Option<C::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        yields::before_poll();
        let mut this = self.project();
        let state = this.entry.state();
        state.turn.begin();
        if !*this.registered {
            // Before the order is read: one that comes later finds the waker.
            state.set_waker(cx.waker().clone());
            *this.registered = true;
        }
        let ordered = state.ordered();
        if ordered > *this.obeyed {
            *this.obeyed = ordered;
            if ordered == Order::Close as u8 {
                return Poll::Ready(None);
            }
            // HTTP/1 puts `Connection: close` into its last response, and closes an idle connection
            // at once.
            if ordered == Order::Finish as u8 || state.wire == Wire::Http2 {
                this.connection.as_mut().graceful_shutdown();
            }
        }
        this.connection.poll(cx).map(Some)
    }
}
