//! Response sinks of connections: one response, or many through a channel; and cancellation when a
//! client disconnects.
//!
//! The receiving side holds the responder weakly: a strong reference would keep a lost request
//! alive, and its loss would never be reported.

use super::task;
use super::unread::{ConnectionUnread, StreamUnread, response_size};
use parking_lot::{Mutex, MutexGuard};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};
use tokio::sync::mpsc;
use trtserver_base::error::{Error, Result};
use trtserver_request::{InferResponse, Responder, ResponseSink, SharedSink, SingleResponse, Sink};

/// A sink for exactly one response, and its receiver. `handler` names the endpoint in the log line
/// of a cancellation.
pub fn unary_sink(handler: &'static &'static str) -> (Sink, UnaryReceiver) {
    new_unary(None, handler)
}

/// The same for a response that is encoded only once the client reads: it is counted as unread
/// until then.
pub fn counted_unary(
    unread: &Arc<ConnectionUnread>,
    handler: &'static &'static str,
) -> (Sink, UnaryReceiver) {
    new_unary(Some(Arc::clone(unread)), handler)
}

fn new_unary(
    unread: Option<Arc<ConnectionUnread>>,
    handler: &'static &'static str,
) -> (Sink, UnaryReceiver) {
    let stage = Mutex::new(Stage::Empty(SingleResponse::default(), None));
    let unary = Arc::new(Unary { stage, unread, handler });
    (Sink::shared(Arc::clone(&unary) as _), UnaryReceiver(unary))
}

/// Shared by the sink and the receiver of one response.
struct Unary {
    stage: Mutex<Stage>,
    unread: Option<Arc<ConnectionUnread>>,
    /// A reference to keep the allocation small.
    handler: &'static &'static str,
}

enum Stage {
    /// No response yet; the waker of the receiver, if it waits.
    Empty(SingleResponse, Option<Waker>),
    Responded(Result<InferResponse>),
    /// The response was taken, or the sink was dropped.
    Closed,
}

impl Unary {
    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock()
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
        Poll::Ready(match std::mem::replace(&mut *stage, Stage::Closed) {
            Stage::Responded(response) => response,
            _ => Err(Error::internal("the request was lost inside the server")),
        })
    }
}

/// Changes the stage, and wakes the receiver.
fn advance(mut stage: MutexGuard<'_, Stage>, to: Stage) {
    let bytes = match &to {
        Stage::Responded(Ok(response)) => response.byte_size(),
        _ => 0,
    };
    let before = std::mem::replace(&mut *stage, to);
    drop(stage);
    if let Stage::Empty(_, Some(waker)) = before {
        task::complete_inline(bytes, || waker.wake());
    }
}

impl SharedSink for Unary {
    fn send(&self, response: Result<Option<InferResponse>>, last: bool) {
        let mut stage = self.lock();
        if let Stage::Empty(single, _) = &mut *stage
            && let Some(mut response) = single.put(response, last)
        {
            if let Some(unread) = &self.unread {
                response = response.and_then(|response| {
                    let counted = unread.count_response(response_size(&response))?;
                    Ok(InferResponse { unread: Some(Box::new(counted)), ..response })
                });
            }
            advance(stage, Stage::Responded(response));
        }
    }

    fn closed(&self) {
        let stage = self.lock();
        if matches!(*stage, Stage::Empty(..)) {
            advance(stage, Stage::Closed);
        }
    }
}

/// The receiver of a [`unary_sink`] sink.
pub struct UnaryReceiver(Arc<Unary>);

impl UnaryReceiver {
    /// The response to the request of `responder`, which was given the sink.
    pub fn await_response(self, responder: Weak<Responder>) -> PendingResponse {
        PendingResponse { unary: self.0, guard: CancelGuard::new(responder) }
    }
}

/// A response that has not arrived. Dropping it before that cancels the request.
pub struct PendingResponse {
    unary: Arc<Unary>,
    guard: CancelGuard,
}

impl Future for PendingResponse {
    type Output = Result<InferResponse>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<InferResponse>> {
        let response = ready!(self.unary.poll(cx));
        self.guard.disarm();
        Poll::Ready(response)
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        if self.guard.is_armed() {
            log_cancellation(self.unary.handler);
        }
    }
}

/// The line of a request or stream that its client cancelled. Triton's test suites count it.
pub fn log_cancellation(handler: &str) {
    tracing::debug!("Cancellation notification received for {handler}");
}

/// One response of a channel sink.
pub struct StreamItem {
    /// Number of the request on its stream.
    pub request: u64,
    pub response: Result<Option<InferResponse>>,
    /// No response follows for this request.
    pub last: bool,
}

/// A sink that sends every response with the number `request` to `channel`, which requests may
/// share. The channel has no bound of its own: `unread` limits what is in it.
pub fn stream_sink(
    request: u64,
    channel: mpsc::UnboundedSender<StreamItem>,
    unread: Arc<StreamUnread>,
) -> Sink {
    ChannelSink { request, channel, unread, refused: false }.into()
}

struct ChannelSink {
    request: u64,
    channel: mpsc::UnboundedSender<StreamItem>,
    unread: Arc<StreamUnread>,
    /// A response was replaced by an error, because the client reads too little.
    refused: bool,
}

impl ChannelSink {
    fn count(&self, mut response: InferResponse) -> Result<InferResponse> {
        let mut unread = match response.unread.take() {
            Some(unread) => unread,
            None => Box::new(self.unread.count_response(response_size(&response))?),
        };
        unread.set_delivered();
        response.unread = Some(unread);
        Ok(response)
    }
}

impl ResponseSink for ChannelSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        if self.refused {
            return;
        }
        let failed = response.is_err();
        let response = response.and_then(|r| r.map(|r| self.count(r)).transpose());
        self.refused = response.is_err() && !failed;
        let last = last || response.is_err();
        let bytes = response.iter().flatten().map(InferResponse::byte_size).sum();
        let item = StreamItem { request: self.request, response, last };
        task::complete_inline(bytes, || drop(self.channel.send(item)));
    }
}

/// Cancels a request when dropped, because its client disconnected. Disarmed by the response.
pub struct CancelGuard(Option<Weak<Responder>>);

impl CancelGuard {
    pub fn new(responder: Weak<Responder>) -> Self {
        Self(Some(responder))
    }

    fn is_armed(&self) -> bool {
        self.0.is_some()
    }

    pub fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let Some(responder) = self.0.take().and_then(|weak| weak.upgrade()) {
            responder.cancel_token.cancel();
        }
    }
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
