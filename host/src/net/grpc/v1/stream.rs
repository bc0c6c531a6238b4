//! One stream of inference requests (contract/v1 §4.3).
//!
//! Requests enter the queues in the order in which they arrive, because sequences depend on it, and are
//! answered in that order too, which serves all clients. A failed request is answered like any other and does
//! not end the stream. When the caller goes away or his time is over, everything of his that still runs is
//! cancelled.

use super::infer;
use crate::clock::now_ns;
use crate::net::context::Context;
use crate::net::grpc::deadline;
use crate::net::v1::run::Running;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;
use trtserver_proto::v1::{InferRequest, InferResponse};

/// Requests of one stream that may be under way. The next is not read before one of them is answered.
const MOST: usize = 1000;

/// Answers of a call with a deadline that may wait for a slow reader.
const MAX_UNREAD: usize = 16;

pub type Answers = Pin<Box<dyn Stream<Item = Result<InferResponse, Status>> + Send>>;

/// A request whose answer has not been sent.
enum Pending {
    Running(Box<Running>),
    /// Refused at once.
    Answer(InferResponse),
    /// The stream itself broke.
    Broken(Status),
}

/// The answers to the requests of a stream. `deadline_ns` is that of the whole call, 0 = none.
pub fn answers<S>(ctx: &Arc<Context>, requests: S, deadline_ns: u64) -> Answers
where
    S: Stream<Item = Result<InferRequest, Status>> + Send + Unpin + 'static,
{
    let (sender, receiver) = mpsc::channel(MOST);
    tokio::spawn(read(Arc::clone(ctx), requests, sender, deadline_ns));
    let ctx = Arc::clone(ctx);
    let answers = ReceiverStream::new(receiver).then(move |pending| {
        let ctx = Arc::clone(&ctx);
        async move {
            match pending {
                Pending::Running(running) => Ok(infer::finish(&ctx, *running).await),
                Pending::Answer(answer) => Ok(answer),
                Pending::Broken(status) => Err(status),
            }
        }
    });
    if deadline_ns == 0 { Box::pin(answers) } else { until(deadline_ns, Box::pin(answers)) }
}

/// The answers that come before the deadline. A task takes them: what runs is cancelled in time also when the
/// caller reads none.
fn until(deadline_ns: u64, answers: Answers) -> Answers {
    let (sender, receiver) = mpsc::channel(MAX_UNREAD);
    tokio::spawn(async move {
        let work = Box::pin(pass_on(answers, &sender));
        // The work is over when this has waited for it, and whatever was under way is cancelled.
        if let Err(status) = deadline::within(deadline_ns, work).await {
            let _ = sender.send(Err(status)).await;
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

async fn pass_on(
    mut answers: Answers,
    to: &mpsc::Sender<Result<InferResponse, Status>>,
) -> Result<(), Status> {
    loop {
        let answer = tokio::select! {
            answer = answers.next() => answer,
            () = to.closed() => None,
        };
        let Some(answer) = answer else { return Ok(()) };
        if to.send(answer).await.is_err() {
            return Ok(());
        }
    }
}

/// Reads until the caller has no more to send, or wants no more answers.
async fn read<S>(
    ctx: Arc<Context>,
    mut requests: S,
    sender: mpsc::Sender<Pending>,
    deadline_ns: u64,
) where
    S: Stream<Item = Result<InferRequest, Status>> + Unpin,
{
    while let Ok(place) = sender.reserve().await {
        let request = tokio::select! {
            request = requests.next() => request,
            () = sender.closed() => return,
        };
        match request {
            None => return,
            Some(Err(status)) => {
                place.send(Pending::Broken(status));
                return;
            }
            Some(Ok(request)) => {
                place.send(match infer::begin(&ctx, request, now_ns(), deadline_ns) {
                    Ok(running) => Pending::Running(Box::new(running)),
                    Err(failure) => Pending::Answer(infer::failed(&ctx, &failure)),
                });
            }
        }
    }
}
