//! StreamInfer (docs/protocol/v1.md §4.3).
//!
//! Requests enter the queues in the order of their arrival, because sequences depend on it, and
//! responses are sent in that order too, which suits all clients. A failed request does not end the
//! stream. When the client disconnects or the deadline passes, all pending requests are cancelled.

use super::infer;
use crate::infer::{InferFailure, PendingRequest, RequestArrival};
use http::{Request, Response};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;
use trtserver_base::clock::now_ns;
use trtserver_base::request_id::for_current_request;
use trtserver_proto::v1::{InferRequest, InferResponse};
use trtserver_request_trace::{TraceContext, TraceWire};
use trtserver_wire::access::InFlightRequest;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers::ReadyOrDeferred;
use trtserver_wire::grpc::body::GrpcBody;
use trtserver_wire::grpc::stream_messages::{StreamBody, StreamDecoding};
use trtserver_wire::grpc::{deadline, stream_response};
use trtserver_wire::sink;
use trtserver_wire::trace_context::read_trace_context;
use trtserver_wire::unread::ConnectionUnread;

/// Pending requests of one stream, at most. Beyond it the stream is not read, which is the client's
/// backpressure.
const MAX_PENDING: usize = 1000;

/// Responses of a call with a deadline that may wait for a slow client.
const MAX_UNREAD: usize = 16;

pub type ResponseStream = Pin<Box<dyn Stream<Item = Result<InferResponse, Status>> + Send>>;

/// A request whose response has not been sent.
enum StreamItem {
    Pending(Box<PendingRequest>, Option<InFlightRequest>),
    /// Refused at once.
    Refused(InferResponse),
    /// The client reset the stream.
    Broken(Status),
}

/// Serves `/nvidia.inferenceserver.GRPCService/StreamInfer`.
pub fn serve_stream_infer(
    ctx: &Arc<FrontendContext>,
    request: Request<impl StreamBody>,
    unread: Arc<ConnectionUnread>,
) -> Response<GrpcBody> {
    let shared = Arc::clone(ctx);
    let trace_context = read_trace_context(request.headers());
    stream_response::respond_with_stream(
        ctx,
        request,
        StreamDecoding::without_conversion(infer::RAW_INPUT),
        move |requests, deadline_ns| {
            answer_in_order(&shared, requests, (deadline_ns, trace_context), unread)
        },
    )
}

/// The responses to the requests of a stream. `deadline_ns` is that of the whole call, 0 = none;
/// `trace_context` what its head says.
pub fn answer_in_order<S>(
    ctx: &Arc<FrontendContext>,
    requests: S,
    (deadline_ns, trace_context): (u64, Option<Box<TraceContext>>),
    unread: Arc<ConnectionUnread>,
) -> ResponseStream
where
    S: Stream<Item = Result<InferRequest, Status>> + Send + Unpin + 'static,
{
    let (sender, receiver) = mpsc::channel(MAX_PENDING);
    let call = (deadline_ns, trace_context);
    let reading = read(Arc::clone(ctx), requests, sender, call, unread);
    tokio::spawn(for_current_request(reading));
    let ctx = Arc::clone(ctx);
    let responses = ReceiverStream::new(receiver).then(move |item| {
        let ctx = Arc::clone(&ctx);
        async move {
            match item {
                StreamItem::Pending(pending, _counted) => {
                    Ok(infer::finish_infer(&ctx, *pending).await)
                }
                StreamItem::Refused(response) => Ok(response),
                StreamItem::Broken(status) => Err(status),
            }
        }
    });
    if deadline_ns == 0 { Box::pin(responses) } else { until(deadline_ns, Box::pin(responses)) }
}

/// The responses before the deadline. A task forwards them, so that pending requests are cancelled
/// in time even if the client reads no responses.
fn until(deadline_ns: u64, responses: ResponseStream) -> ResponseStream {
    let (sender, receiver) = mpsc::channel(MAX_UNREAD);
    tokio::spawn(async move {
        let work = Box::pin(forward(responses, &sender));
        // `within` drops the work, which cancels all pending requests.
        if let Err(status) = deadline::run_until_deadline(deadline_ns, work).await {
            let _ = sender.send(Err(status)).await;
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

async fn forward(
    mut responses: ResponseStream,
    to: &mpsc::Sender<Result<InferResponse, Status>>,
) -> Result<(), Status> {
    loop {
        let response = tokio::select! {
            response = responses.next() => response,
            () = to.closed() => None,
        };
        let Some(response) = response else { return Ok(()) };
        if to.send(response).await.is_err() {
            return Ok(());
        }
    }
}

/// Reads requests until the client half-closes or resets the stream.
async fn read<S>(
    ctx: Arc<FrontendContext>,
    mut requests: S,
    sender: mpsc::Sender<StreamItem>,
    (deadline_ns, trace_context): (u64, Option<Box<TraceContext>>),
    unread: Arc<ConnectionUnread>,
) where
    S: Stream<Item = Result<InferRequest, Status>> + Unpin,
{
    while let Ok(permit) = sender.reserve().await {
        let full = unread.is_half_full();
        let request = tokio::select! {
            request = requests.next(), if !full => request,
            () = Arc::clone(&unread).wait_below_half(), if full => continue,
            () = sender.closed() => return,
        };
        match request {
            None => return,
            Some(Err(status)) => {
                permit.send(StreamItem::Broken(status));
                return;
            }
            Some(Ok(request)) => {
                let counted = match ctx.admit_in_stream() {
                    Ok(counted) => counted,
                    Err(error) => {
                        let id = request.meta_data.as_ref().map_or(0, |header| header.id);
                        let failure = InferFailure { error, id, request_id: 0 };
                        permit.send(StreamItem::Refused(infer::failed_response(&ctx, &failure)));
                        continue;
                    }
                };
                let sink = sink::counted_unary(&unread, &"StreamInferHandler");
                let trace_context = trace_context.clone();
                let arrival = RequestArrival {
                    wire: TraceWire::V1Grpc,
                    received_ns: now_ns(),
                    trace_context,
                };
                let begun = infer::begin_or_defer(&ctx, request, arrival, deadline_ns, sink);
                let begun = match begun {
                    ReadyOrDeferred::Ready(begun) => begun,
                    ReadyOrDeferred::Deferred(work) => work.await,
                };
                permit.send(match begun {
                    Ok(pending) => StreamItem::Pending(Box::new(pending), counted),
                    Err(failure) => StreamItem::Refused(infer::failed_response(&ctx, &failure)),
                });
            }
        }
    }
}
