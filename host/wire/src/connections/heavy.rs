//! Heavy connections: those whose heads take much of a network thread's time are polled by threads of
//! their own.
//!
//! A network thread that is always busy gets its processor in turn with all other busy threads of
//! the machine, and every connection on it waits for that turn. A thread that sleeps between
//! requests gets a processor as soon as it is woken. So heavy connections do not keep the threads of
//! the others awake. `poll_turn.rs` says which are heavy.

use super::ConnectionState;
use crate::task::Task;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// A connection that moves to the runtime of heavy connections when it becomes heavy, and back when
/// it is light again.
pub struct MovingConnection<C> {
    /// `None` after the move: another task has it.
    connection: Option<C>,
    state: Arc<ConnectionState>,
    /// The runtimes of light and of heavy connections.
    runtimes: [Handle; 2],
    is_heavy: bool,
    /// Orders wake another task, from which the connection has moved here.
    was_moved: bool,
}

impl<C: Future<Output = ()> + Unpin + Send + 'static> MovingConnection<C> {
    /// Called in the runtime of light connections. `heavy`: that of heavy ones.
    pub fn new(connection: C, state: Arc<ConnectionState>, heavy: Handle) -> Self {
        let runtimes = [Handle::current(), heavy];
        Self { connection: Some(connection), state, runtimes, is_heavy: false, was_moved: false }
    }

    /// Makes a task of the other runtime, which polls the connection at once: no wake is lost.
    fn change_runtime(&mut self) {
        let moved = Self {
            connection: self.connection.take(),
            state: Arc::clone(&self.state),
            runtimes: self.runtimes.clone(),
            is_heavy: !self.is_heavy,
            was_moved: true,
        };
        let _entered = self.runtimes[usize::from(moved.is_heavy)].enter();
        Task::spawn(moved);
    }
}

impl<C: Future<Output = ()> + Unpin + Send + 'static> Future for MovingConnection<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(connection) = &mut this.connection else { return Poll::Ready(()) };
        if this.was_moved {
            // Before the connection reads its order: one that comes later finds the waker.
            this.state.set_waker(cx.waker().clone());
            this.was_moved = false;
        }
        let polled = Pin::new(connection).poll(cx);
        if polled.is_pending() && this.state.turn.is_heavy() != this.is_heavy {
            this.change_runtime();
            return Poll::Ready(());
        }
        polled
    }
}

#[cfg(test)]
#[path = "heavy_tests.rs"]
mod tests;
