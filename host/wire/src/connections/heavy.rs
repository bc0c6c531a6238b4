//! Heavy connections: HTTP/2 connections whose headers take much of a network thread's time are
//! polled by threads of their own.
//!
//! A network thread that is always busy gets its processor in turn with all other busy threads of
//! the machine, and every connection on it waits for that turn. A thread that sleeps between
//! requests gets a processor as soon as it is woken. So heavy connections do not keep the threads of
//! the others awake.

use super::ConnectionState;
use super::guarded::CLOSED_BY_ORDER;
use crate::task::Task;
use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;
use trtserver_base::heap;

/// An HTTP/2 connection that moves to the runtime of heavy connections when it becomes heavy, and
/// back when it is light again. It passes on the wakers of the task that polled it last.
pub struct MovingConnection<C> {
    /// `None` after the move: another task has it.
    connection: Option<C>,
    state: Arc<ConnectionState>,
    /// The runtimes of light and of heavy connections.
    runtimes: [Handle; 2],
    is_heavy: bool,
}

impl<C, E> MovingConnection<C>
where
    C: Future<Output = Option<Result<(), E>>> + Unpin + Send + 'static,
    E: Display + 'static,
{
    /// Called in the runtime of light connections. `heavy`: that of heavy ones.
    pub fn new(connection: C, state: Arc<ConnectionState>, heavy: Handle) -> Self {
        let runtimes = [Handle::current(), heavy];
        Self { connection: Some(connection), state, runtimes, is_heavy: false }
    }

    /// Makes a task of the other runtime.
    fn change_runtime(&mut self) {
        let is_heavy = !self.is_heavy;
        let (state, runtimes) = (Arc::clone(&self.state), self.runtimes.clone());
        let moved = Self { connection: self.connection.take(), state, runtimes, is_heavy };
        let _entered = self.runtimes[usize::from(is_heavy)].enter();
        Task::spawn(moved);
    }
}

impl<C, E> Future for MovingConnection<C>
where
    C: Future<Output = Option<Result<(), E>>> + Unpin + Send + 'static,
    E: Display + 'static,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(connection) = &mut this.connection else { return Poll::Ready(()) };
        let polled = Pin::new(connection).poll(cx);
        if polled.is_pending() && this.state.turn.is_heavy() != this.is_heavy {
            this.change_runtime();
            return Poll::Ready(());
        }
        match ready!(polled) {
            Some(Ok(())) => {}
            Some(Err(e)) => tracing::debug!("gRPC connection ended: {e}"),
            None => tracing::debug!("gRPC connection ended: {CLOSED_BY_ORDER}"),
        }
        heap::trim_soon();
        Poll::Ready(())
    }
}

#[cfg(test)]
#[path = "heavy_tests.rs"]
mod tests;
