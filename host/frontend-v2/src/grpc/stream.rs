//! ModelStreamInfer (docs/protocol/v2.md §1.5): many requests on one stream, errors in-band.
//!
//! One task per stream reads requests and sends responses. Responses of ordinary models are sent in
//! the order of their requests and wait for each other; those of a decoupled model are sent as they
//! arrive. Responses that the client has not read are limited by bytes (`wire/src/unread`).

use super::response::{ResponseHead, ResponseSpec};
use super::{fallback, infer};
use crate::{ForwardedHeaders, RequestRegions, count_refused};
use http::{Request, Response};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tonic::Status;
use trtserver_base::clock::now_ns;
use trtserver_base::error::Error;
use trtserver_base::request_id::for_current_request;
use trtserver_base::state::InFlightGuard;
use trtserver_models::OpenVersion;
use trtserver_proto::codec::Encoded;
use trtserver_proto::v2::ModelInferRequest;
use trtserver_request::{InferResponse, StreamLimit};
use trtserver_request_trace::{ActiveTrace, TraceContext, TraceWire};
use trtserver_wire::access::InFlightRequest;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers;
use trtserver_wire::grpc::body::GrpcBody;
use trtserver_wire::grpc::compression::Compression;
use trtserver_wire::grpc::stream_messages::{StreamBody, StreamDecoding};
use trtserver_wire::grpc::{deadline, stream_response, unary};
use trtserver_wire::sink;
use trtserver_wire::sink::{CancelGuard, StreamItem};
use trtserver_wire::status_code;
use trtserver_wire::trace_context::read_trace_context;
use trtserver_wire::unread::{ConnectionUnread, StreamUnread};

/// Pending requests of one stream, at most. Beyond it, or the limit of unread responses, the stream
/// is not read, which is the client's backpressure.
const MAX_PENDING: usize = 1024;
/// Responses that may wait for a slow client before the stream's task waits too.
const MAX_UNREAD: usize = 16;

type Message = Result<Encoded, Status>;

const DECODING: StreamDecoding<ModelInferRequest> =
    StreamDecoding { raw_field: infer::RAW_INPUTS, convert: fallback::convert_contents };

/// Serves `/inference.GRPCInferenceService/ModelStreamInfer`.
pub fn serve_stream_infer(
    ctx: &Arc<FrontendContext>,
    request: Request<impl StreamBody>,
    unread: Arc<ConnectionUnread>,
) -> Response<GrpcBody> {
    let true_status = request.headers().get("triton_grpc_error");
    let true_status = true_status.is_some_and(|value| value.as_bytes() == b"true");
    let settings = &ctx.settings;
    let forwarded =
        ForwardedHeaders::from_headers(settings.grpc_header_forward.as_ref(), request.headers());
    let forwarded = match forwarded {
        Ok(forwarded) => forwarded,
        Err(error) => return unary::refuse_call(&status_code::to_grpc_status(error)),
    };
    let compression = settings.grpc_compression;
    let compression =
        compression.and_then(|level| Compression::from_headers(request.headers(), level));
    let shared = Arc::clone(ctx);
    // Settings may be changed while the stream is open.
    let trace_context = read_trace_context(request.headers());
    let serve = move |requests, deadline_ns| {
        let call = StreamCall { true_status, deadline_ns, forwarded, trace_context };
        answer_requests(shared, requests, call, unread)
    };
    match compression {
        None => stream_response::respond_with_stream(ctx, request, DECODING, serve),
        Some(compression) => {
            stream_response::respond_compressed(ctx, request, DECODING, compression, serve)
        }
    }
}

/// What the head of a stream says.
pub struct StreamCall {
    /// The first error ends the stream with its own status instead of being sent in-band.
    pub true_status: bool,
    /// Deadline of the whole call; 0 = none.
    pub deadline_ns: u64,
    pub forwarded: Option<Box<ForwardedHeaders>>,
    pub trace_context: Option<Box<TraceContext>>,
}

/// Serves the requests of `incoming`.
pub fn answer_requests(
    ctx: Arc<FrontendContext>,
    incoming: impl Stream<Item = Result<ModelInferRequest, Status>> + Send + Unpin + 'static,
    call: StreamCall,
    connection: Arc<ConnectionUnread>,
) -> ReceiverStream<Message> {
    let StreamCall { true_status, deadline_ns, forwarded, trace_context } = call;
    let forwarded = forwarded.map(Arc::from);
    let (out, responses) = mpsc::channel(MAX_UNREAD);
    let (sink, items) = mpsc::unbounded_channel();
    let unread = StreamUnread::new(connection, ctx.next_stream_number());
    let open_unread = Arc::clone(&unread);
    let submitter =
        Submitter { ctx, sink, unread: open_unread, deadline_ns, forwarded, trace_context };
    let pending =
        PendingRequests { submitter, unread, slots: BTreeMap::new(), next: 0, complete: false };
    tokio::spawn(for_current_request(async move {
        let work = async {
            drive(pending, incoming, items, &out, true_status).await;
            Ok(())
        };
        // `within` drops the work, which cancels all pending requests.
        if let Err(status) = deadline::run_until_deadline(deadline_ns, Box::pin(work)).await {
            let _ = out.send(Err(status)).await;
        }
    }));
    ReceiverStream::new(responses)
}

async fn drive(
    mut pending: PendingRequests,
    mut incoming: impl Stream<Item = Result<ModelInferRequest, Status>> + Unpin,
    mut items: mpsc::UnboundedReceiver<StreamItem>,
    out: &mpsc::Sender<Message>,
    true_status: bool,
) {
    let mut open = true;
    let unread = Arc::clone(&pending.unread);
    // Every return drops `pending`, which cancels its requests.
    while open || !pending.slots.is_empty() {
        tokio::select! {
            request = incoming.next(), if open && pending.may_begin() => match request {
                Some(Ok(request)) => pending.begin(request).await,
                // Malformed, too large, or the stream broke.
                Some(Err(status)) => {
                    pending.complete = true;
                    let _ = out.send(Err(status)).await;
                    return;
                }
                None => open = false,
            },
            Some(item) = items.recv() => pending.take(item),
            () = unread.wait_below_limit() => {}
            () = out.closed() => return,
        }
        while let Some(outgoing) = pending.next_outgoing() {
            let (message, failed) = match outgoing {
                OutgoingMessage::Error(error, _) if true_status => {
                    (Err(status_code::to_grpc_status(error)), true)
                }
                OutgoingMessage::Response(message) | OutgoingMessage::Error(_, message) => {
                    (Ok(message), false)
                }
            };
            if out.send(message).await.is_err() || failed {
                pending.complete = failed;
                return;
            }
        }
    }
    pending.complete = true;
}

enum OutgoingMessage {
    Response(Encoded),
    /// With its in-band form.
    Error(Error, Encoded),
}

/// The requests of one stream whose responses are not complete.
struct PendingRequests {
    submitter: Submitter,
    unread: Arc<StreamUnread>,
    /// By number, which is the order of arrival.
    slots: BTreeMap<u64, StreamSlot>,
    next: u64,
    /// The stream has ended; its client did not cancel it.
    complete: bool,
}

impl Drop for PendingRequests {
    /// Cancels the newest first: if the oldest, which may be executing, ended first, its instance
    /// could begin the next one before that is cancelled, too.
    fn drop(&mut self) {
        if !self.complete {
            sink::log_cancellation("ModelStreamInferHandler");
        }
        while self.slots.pop_last().is_some() {}
        // Wakes backends that wait for the client. If it came first, such a request could end
        // before it is cancelled, and would be counted as failed only.
        self.unread.close();
    }
}

/// Queues the requests of a stream.
#[derive(Clone)]
struct Submitter {
    ctx: Arc<FrontendContext>,
    sink: mpsc::UnboundedSender<StreamItem>,
    unread: Arc<StreamUnread>,
    deadline_ns: u64,
    forwarded: Option<Arc<ForwardedHeaders>>,
    trace_context: Option<Box<TraceContext>>,
}

impl Submitter {
    fn submit(
        &self,
        number: u64,
        request: ModelInferRequest,
        received_ns: u64,
    ) -> Result<AcceptedRequest, Error> {
        let in_flight = self.ctx.state.begin_request();
        let counted = self.ctx.admit_in_stream()?;
        let found = infer::find_version(&self.ctx, &request.model_name, &request.model_version)?;
        let trace = self.ctx.begin_trace(TraceWire::V2Grpc, &found.name, received_ns, || {
            self.trace_context.clone()
        });
        if let Some(trace) = &trace {
            trace.received(now_ns());
        }
        let model_name = request.model_name.clone();
        let model_version = request.model_version.clone();
        let submitted =
            fallback::read_request(&found, request, RequestRegions::from_context(&self.ctx))
                .and_then(|(mut unchecked, spec)| {
                    unchecked.streaming = true;
                    unchecked.deadline_ns = self.deadline_ns;
                    unchecked.trace = trace.clone();
                    if let Some(forwarded) = &self.forwarded {
                        forwarded.add_to(&mut unchecked.parameters);
                    }
                    let empty_final_response = unchecked.parameters.empty_final_response;
                    let unread = Arc::clone(&self.unread);
                    unchecked.stream = Some(Arc::clone(&unread) as _);
                    let sink = sink::stream_sink(number, self.sink.clone(), unread);
                    let queued = unchecked.submit(&self.ctx, &found, received_ns, sink)?;
                    Ok((queued, spec, empty_final_response))
                });
        let ((responder, served), spec, empty_final_response) =
            submitted.map_err(|e| count_refused(&found, trace.as_ref(), received_ns, e))?;
        Ok(AcceptedRequest {
            served,
            spec,
            model_name,
            model_version,
            empty_final_response,
            held: None,
            guard: CancelGuard::new(responder),
            trace,
            _in_flight: (in_flight, counted),
        })
    }
}

/// One request.
struct StreamSlot {
    /// Waits for the slots before it.
    ordered: bool,
    done: bool,
    outgoing: VecDeque<OutgoingMessage>,
    /// `None` if the request was refused before it was queued.
    accepted: Option<AcceptedRequest>,
}

/// A request that was queued.
struct AcceptedRequest {
    served: Arc<OpenVersion>,
    spec: ResponseSpec,
    /// As requested, for responses without outputs.
    model_name: String,
    model_version: String,
    empty_final_response: bool,
    /// A response of an ordinary model, until it is known whether it is the last.
    held: Option<InferResponse>,
    guard: CancelGuard,
    trace: Option<Arc<ActiveTrace>>,
    _in_flight: (InFlightGuard, Option<InFlightRequest>),
}

impl PendingRequests {
    /// Another request may be read.
    fn may_begin(&self) -> bool {
        self.slots.len() < MAX_PENDING && !self.unread.is_full()
    }

    /// Queues a request. One that copies much is read on a decode worker; later ones of the stream
    /// wait for that, since the order of arrival counts.
    async fn begin(&mut self, request: ModelInferRequest) {
        let received_ns = now_ns();
        let number = self.next;
        self.next += 1;
        let id = request.id.clone();
        let mut slot =
            StreamSlot { ordered: true, done: false, outgoing: VecDeque::new(), accepted: None };
        let submitted = if fallback::takes_long(&self.submitter.ctx, &request) {
            let submitter = self.submitter.clone();
            let submit = move || submitter.submit(number, request, received_ns);
            decode_workers::run_on_worker(submit).await.and_then(|submitted| submitted)
        } else {
            self.submitter.submit(number, request, received_ns)
        };
        match submitted {
            Ok(accepted) => {
                slot.ordered = !accepted.served.decoupled();
                slot.accepted = Some(accepted);
            }
            Err(error) => {
                let message = ResponseHead::new("", "", &id).into_stream_response(&error.message);
                slot.outgoing.push_back(OutgoingMessage::Error(error, message));
                slot.done = true;
            }
        }
        self.slots.insert(number, slot);
    }

    /// Takes a response of one request.
    fn take(&mut self, item: StreamItem) {
        let Some(slot) = self.slots.get_mut(&item.request) else { return };
        let Some(accepted) = &mut slot.accepted else { return };
        let ordered = slot.ordered;
        match item.response {
            Err(error) => slot.outgoing.push_back(accepted.error(error)),
            Ok(response) => {
                // A response of an ordinary model is held until the next one, or the end, has
                // arrived.
                if let Some(earlier) = accepted.held.take() {
                    let last = item.last && response.is_none();
                    slot.outgoing.push_back(accepted.response(earlier, last));
                    if last {
                        slot.done = true;
                    }
                }
                match response {
                    Some(response) if ordered && !item.last => accepted.held = Some(response),
                    Some(response) => {
                        slot.outgoing.push_back(accepted.response(response, item.last));
                    }
                    None if slot.done => {}
                    None if ordered => {
                        let error = Error::internal("expected a single response, got 0");
                        slot.outgoing.push_back(accepted.error(error));
                    }
                    None if accepted.empty_final_response => {
                        slot.outgoing
                            .push_back(OutgoingMessage::Response(accepted.without_outputs("")));
                    }
                    None => {}
                }
            }
        }
        if item.last {
            slot.done = true;
            accepted.guard.disarm();
        }
    }

    /// The next message that may be sent now. Removes the slots that are complete.
    fn next_outgoing(&mut self) -> Option<OutgoingMessage> {
        let mut blocked = false;
        let mut complete = Vec::new();
        let mut found = None;
        for (number, slot) in &mut self.slots {
            if slot.ordered && blocked {
                continue;
            }
            found = slot.outgoing.pop_front();
            if slot.outgoing.is_empty() && slot.done {
                complete.push(*number);
            } else if slot.ordered {
                blocked = true;
            }
            if found.is_some() {
                break;
            }
        }
        for number in complete {
            self.slots.remove(&number);
        }
        found
    }
}

impl AcceptedRequest {
    fn response(&self, mut response: InferResponse, last: bool) -> OutgoingMessage {
        match self.spec.rank(&self.served, &mut response) {
            Ok(()) => {
                let head = ResponseHead::from_response(&self.served, &self.spec, &response)
                    .mark_final(last);
                let encoded = head.into_stream_response("");
                let counted = match &self.trace {
                    None => response.unread.map(|unread| unread as Box<dyn Send + Sync>),
                    Some(trace) => Some(Box::new((response.unread, trace.sending(0))) as _),
                };
                OutgoingMessage::Response(Encoded { counted, ..encoded })
            }
            Err(error) => self.error(error),
        }
    }

    fn error(&self, error: Error) -> OutgoingMessage {
        let message = self.without_outputs(&error.message);
        OutgoingMessage::Error(error, message)
    }

    /// The final message of a request, without outputs.
    fn without_outputs(&self, error: &str) -> Encoded {
        let head = ResponseHead::new(&self.model_name, &self.model_version, &self.spec.id);
        head.mark_final(true).into_stream_response(error)
    }
}
