//! The responses to one generate request, in their order. Dropping them before the last one cancels
//! the request.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use trtserver_base::error::{Error, Result};
use trtserver_base::state::InFlightGuard;
use trtserver_models::OpenVersion;
use trtserver_request::{InferResponse, Responder};
use trtserver_wire::sink::{CancelGuard, StreamItem};
use trtserver_wire::unread::StreamUnread;

/// Receiving end of the responses to one generate request; dropping it cancels the request.
pub struct Responses {
    pub served: Arc<OpenVersion>,
    /// Id of the request.
    pub id: String,
    items: mpsc::UnboundedReceiver<StreamItem>,
    /// `None` after the last response.
    guard: Option<CancelGuard>,
    unread: Arc<StreamUnread>,
    _in_flight: InFlightGuard,
}

impl Responses {
    pub fn new(
        served: Arc<OpenVersion>,
        id: String,
        items: mpsc::UnboundedReceiver<StreamItem>,
        responder: Weak<Responder>,
        unread: Arc<StreamUnread>,
        in_flight: InFlightGuard,
    ) -> Self {
        let guard = Some(CancelGuard::new(responder));
        Self { served, id, items, guard, unread, _in_flight: in_flight }
    }

    /// The next response, `None` after the last one. Nothing follows an error.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<InferResponse>>> {
        while self.guard.is_some() {
            let Some(item) = ready!(self.items.poll_recv(cx)) else {
                self.guard = None;
                return Poll::Ready(Some(Err(lost())));
            };
            if item.last
                && let Some(mut guard) = self.guard.take()
            {
                guard.disarm();
            }
            if let Some(response) = item.response.transpose() {
                return Poll::Ready(Some(response));
            }
        }
        Poll::Ready(None)
    }

    pub async fn next(&mut self) -> Option<Result<InferResponse>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// No further response is taken.
    pub fn cancel(&mut self) {
        // Before the backends that wait for the client are woken: such a request could end before
        // it is cancelled, and would be counted as failed only.
        self.guard = None;
        self.unread.close();
    }
}

impl Drop for Responses {
    fn drop(&mut self) {
        self.cancel();
    }
}

fn lost() -> Error {
    Error::internal("the request was lost inside the server")
}
