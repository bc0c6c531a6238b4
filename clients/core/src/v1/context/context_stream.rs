//! The gRPC stream of a context: requests in order, responses matched by their id and delivered in
//! the order of arrival.
//!
//! Asynchronous runs are tasks, which the runtime may wake in any order. So a response is delivered
//! with a [`Delivery`], and the next one only after that was dropped.

use crate::deadline::DEFAULT_DEADLINE;
use crate::error::{Error, Kind, Result};
use crate::sync::Mutex;
use crate::transport::{CallTiming, deadline_after, within_deadline};
use crate::v1::{Client, InferRequest, InferResponse, StreamReceiver, StreamSender};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Held until the response is in the queue of delivered responses. `None` without a response.
pub(crate) type Delivery = Option<OwnedSemaphorePermit>;

pub(super) struct ContextStream {
    sender: Option<StreamSender>,
    pending: Arc<PendingResponses>,
}

#[derive(Default)]
struct PendingResponses(Mutex<PendingState>);

type Delivered = (Result<InferResponse>, Delivery);

#[derive(Default)]
struct PendingState {
    requests: BTreeMap<u64, oneshot::Sender<Delivered>>,
    /// Why the stream has ended.
    ended: Option<Error>,
    /// The context was dropped.
    closing: bool,
}

impl ContextStream {
    /// Opens the stream and starts the task that receives its responses.
    pub async fn open(client: &Client) -> Result<Self> {
        let (sender, receiver) = client.stream().await?.split();
        let pending = Arc::new(PendingResponses::default());
        tokio::spawn(receive_responses(receiver, pending.clone()));
        Ok(Self { sender, pending })
    }

    /// Sends one request and waits for its response, at most until the deadline. The request has
    /// its place in the stream with the first poll.
    pub async fn run(&self, client: &Client, request: &InferRequest) -> Delivered {
        let mut delivery = Delivery::default();
        let result = self.exchange(client, request, &mut delivery).await;
        (result, delivery)
    }

    async fn exchange(
        &self,
        client: &Client,
        request: &InferRequest,
        delivery: &mut Delivery,
    ) -> Result<InferResponse> {
        let id = request.header.id;
        let (complete, completed) = oneshot::channel();
        {
            let mut state = self.pending.0.lock();
            if let Some(error) = &state.ended {
                return Err(error.clone());
            }
            state.requests.insert(id, complete);
        }
        let limit = request.deadline.or(client.deadline);
        let start = Instant::now();
        let call = async {
            let closed = || Error::new(Kind::Connection, "Stream has been closed.");
            let sender = self.sender.as_ref().ok_or_else(closed)?;
            let written = sender.send(request).await;
            let sent = Instant::now();
            // If the stream broke, the receiving task knows why.
            let (response, turn) = completed.await.unwrap_or_else(|_| (Err(closed()), None));
            *delivery = turn;
            let response = response?;
            written?;
            Ok((response, sent))
        };
        let result = within_deadline(deadline_after(limit), call).await;
        self.pending.0.lock().requests.remove(&id);
        let (mut response, sent) = result.map_err(|e| {
            e.with_asked(|| format!("{}, stream", client.url())).with_model(&request.model)
        })?;
        let end = Instant::now();
        response.timing = Some(CallTiming { start, sent, first_byte: end, end });
        Ok(response)
    }
}

/// Outstanding requests still complete at the server: the task goes on receiving until the stream
/// ends.
impl Drop for ContextStream {
    fn drop(&mut self) {
        self.pending.0.lock().closing = true;
        self.sender = None;
    }
}

async fn receive_responses(mut receiver: StreamReceiver, pending: Arc<PendingResponses>) {
    let delivering = Arc::new(Semaphore::new(1));
    loop {
        let closing = pending.0.lock().closing;
        let next = match closing {
            false => receiver.next().await,
            true => match tokio::time::timeout(DEFAULT_DEADLINE, receiver.next()).await {
                Ok(next) => next,
                Err(_) => return,
            },
        };
        let (id, result) = match next {
            Some(Ok(response)) => (response.header.id, Ok(response)),
            Some(Err(error)) => match error.id().parse() {
                Ok(id) => (id, Err(error)),
                Err(_) => return end_stream(&pending, error),
            },
            None => {
                let text = "Stream has been closed.";
                return end_stream(&pending, Error::new(Kind::Connection, text));
            }
        };
        // Requests whose deadline has passed are no longer listed.
        let complete = pending.0.lock().requests.remove(&id);
        if let Some(complete) = complete {
            let turn = delivering.clone().acquire_owned().await.ok();
            let _ = complete.send((result, turn));
        }
    }
}

fn end_stream(pending: &PendingResponses, error: Error) {
    let mut state = pending.0.lock();
    state.ended = Some(error.clone());
    for (_, complete) in std::mem::take(&mut state.requests) {
        let _ = complete.send((Err(error.clone()), None));
    }
}
