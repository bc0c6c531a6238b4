//! Where responses go on their way to a connection: one answer, or many through a channel.
//!
//! The waiting side holds its reply weakly. If it kept the reply alive, a server that lost a request
//! could never notice that nobody is left to answer it.

use crate::error::{Error, Result};
use crate::request::{InferResponse, Responder, ResponseSink, SharedSink, SingleResponse, Sink};
use crate::sync::{Mutex, MutexGuard};
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use tokio::sync::mpsc;

/// A sink for a caller who takes exactly one response, and the end where it arrives.
pub fn unary() -> (Sink, UnaryReceiver) {
    let unary = Arc::new(Unary(Mutex::new(Stage::Empty(SingleResponse::default(), None))));
    (Sink::shared(Arc::clone(&unary) as _), UnaryReceiver(unary))
}

/// What both ends of a unary answer share.
struct Unary(Mutex<Stage>);

enum Stage {
    /// Nothing yet; who waits is to be woken.
    Empty(SingleResponse, Option<Waker>),
    Answered(Result<InferResponse>),
    /// It was fetched, or nobody can answer any more.
    Over,
}

impl Unary {
    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.lock()
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<InferResponse>> {
        let mut stage = self.lock();
        if let Stage::Empty(_, waker) = &mut *stage {
            match waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *waker = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        Poll::Ready(match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Answered(answer) => answer,
            _ => Err(Error::internal("the request was lost inside the server")),
        })
    }
}

/// Moves on, and wakes who waits.
fn advance(mut stage: MutexGuard<'_, Stage>, to: Stage) {
    let before = std::mem::replace(&mut *stage, to);
    drop(stage);
    if let Stage::Empty(_, Some(waker)) = before {
        waker.wake();
    }
}

impl SharedSink for Unary {
    fn send(&self, response: Result<Option<InferResponse>>, last: bool) {
        let mut stage = self.lock();
        if let Stage::Empty(single, _) = &mut *stage
            && let Some(answer) = single.put(response, last)
        {
            advance(stage, Stage::Answered(answer));
        }
    }

    fn closed(&self) {
        let stage = self.lock();
        if matches!(*stage, Stage::Empty(..)) {
            advance(stage, Stage::Over);
        }
    }
}

/// The end of a [`unary`] sink.
pub struct UnaryReceiver(Arc<Unary>);

impl UnaryReceiver {
    /// Waits for the answer. Letting go of the future before that cancels the request.
    pub async fn wait(self, reply: Weak<Responder>) -> Result<InferResponse> {
        let mut guard = CancelGuard::new(reply);
        let answer = poll_fn(|cx| self.0.poll(cx)).await;
        guard.disarm();
        answer
    }
}

/// What a channel sink passes on.
pub struct StreamItem {
    /// Which request of the connection is answered.
    pub request: u64,
    pub response: Result<Option<InferResponse>>,
    /// Nothing follows for this request.
    pub last: bool,
}

/// A sink that tags every response with `request` and puts it into `channel`. Many requests may
/// share a channel.
pub fn channel(request: u64, channel: mpsc::UnboundedSender<StreamItem>) -> Sink {
    ChannelSink { request, channel }.into()
}

struct ChannelSink {
    request: u64,
    channel: mpsc::UnboundedSender<StreamItem>,
}

impl ResponseSink for ChannelSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        let last = last || response.is_err();
        let _ = self.channel.send(StreamItem { request: self.request, response, last });
    }
}

/// Cancels a request when dropped: its caller went away. Disarmed once the answer is there.
pub struct CancelGuard(Option<Weak<Responder>>);

impl CancelGuard {
    pub fn new(reply: Weak<Responder>) -> Self {
        Self(Some(reply))
    }

    /// A guard over a reply that somebody else owns.
    pub fn of(reply: &Arc<Responder>) -> Self {
        Self::new(Arc::downgrade(reply))
    }

    pub fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let Some(reply) = self.0.take().and_then(|weak| weak.upgrade()) {
            reply.cancel_token.cancel();
        }
    }
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
