//! ModelStreamInfer (contract/v2 §1.5): many requests on one stream, errors in-band.
//!
//! One task per stream reads requests and hands out responses. Answers of ordinary models leave in
//! the order of their requests and wait for each other; a decoupled model's leave as they come.

use super::{infer, message};
use crate::clock::now_ns;
use crate::error::Error;
use crate::net::context::Context;
use crate::net::grpc::deadline;
use crate::net::sink::{self, CancelGuard, StreamItem};
use crate::net::status_code;
use crate::net::v2::refused;
use crate::repository::Served;
use crate::request::InferResponse;
use crate::state::InFlightGuard;
use message::ResponseSpec;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tonic::Status;
use trtserver_proto::v2::{ModelInferRequest, ModelInferResponse, ModelStreamInferResponse};

/// Requests of one stream that may be under way; more are not read off the wire.
const MAX_PENDING: usize = 1024;
/// Responses that may wait for a slow reader before the stream's task waits too.
const MAX_UNREAD: usize = 16;

type Message = Result<ModelStreamInferResponse, Status>;

/// Answers the requests of `incoming`. `true_status`: the first error ends the stream with its own
/// status instead of going in-band. `deadline_ns` is that of the whole call, 0 = none.
pub fn respond(
    ctx: Arc<Context>,
    incoming: impl Stream<Item = Result<ModelInferRequest, Status>> + Send + Unpin + 'static,
    true_status: bool,
    deadline_ns: u64,
) -> ReceiverStream<Message> {
    let (out, responses) = mpsc::channel(MAX_UNREAD);
    let (sink, items) = mpsc::unbounded_channel();
    let pending = PendingRequests { ctx, sink, deadline_ns, slots: BTreeMap::new(), next: 0 };
    tokio::spawn(async move {
        let work = async {
            drive(pending, incoming, items, &out, true_status).await;
            Ok(())
        };
        // The work is over when this has waited for it, and whatever was under way is cancelled.
        if let Err(status) = deadline::within(deadline_ns, Box::pin(work)).await {
            let _ = out.send(Err(status)).await;
        }
    });
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
    // Leaving this loop drops the pending, and with it cancels whatever is under way.
    while open || !pending.slots.is_empty() {
        tokio::select! {
            request = incoming.next(), if open && pending.slots.len() < MAX_PENDING => match request {
                Some(Ok(request)) => pending.begin(request),
                // The caller broke off.
                Some(Err(_)) => return,
                None => open = false,
            },
            Some(item) = items.recv() => pending.take(item),
            () = out.closed() => return,
        }
        while let Some(answer) = pending.next_outgoing() {
            let (message, failed) = match answer {
                Outgoing::Response(response) => (Ok(response), false),
                Outgoing::Error(error, _) if true_status => (Err(status_code::status(error)), true),
                Outgoing::Error(error, response) => (
                    Ok(ModelStreamInferResponse {
                        error_message: error.message,
                        infer_response: Some(response),
                    }),
                    false,
                ),
            };
            if out.send(message).await.is_err() || failed {
                return;
            }
        }
    }
}

enum Outgoing {
    Response(ModelStreamInferResponse),
    /// With what goes beside the error in-band.
    Error(Error, ModelInferResponse),
}

/// The requests of one stream that are not fully answered.
struct PendingRequests {
    ctx: Arc<Context>,
    sink: mpsc::UnboundedSender<StreamItem>,
    deadline_ns: u64,
    /// By number, which is the order of arrival.
    slots: BTreeMap<u64, Slot>,
    next: u64,
}

struct Slot {
    /// Waits for the slots before it.
    ordered: bool,
    done: bool,
    outgoing: VecDeque<Outgoing>,
    /// None when it was refused before it was queued.
    work: Option<Accepted>,
}

struct Accepted {
    served: Arc<Served>,
    asked: ResponseSpec,
    /// As requested, for answers that carry no result.
    model_name: String,
    model_version: String,
    empty_final_response: bool,
    /// A response of an ordinary model, until it is known whether it is the last.
    held: Option<InferResponse>,
    guard: CancelGuard,
    _in_flight: InFlightGuard,
}

impl PendingRequests {
    fn begin(&mut self, request: ModelInferRequest) {
        let received_ns = now_ns();
        let number = self.next;
        self.next += 1;
        let id = request.id.clone();
        let mut slot = Slot { ordered: true, done: false, outgoing: VecDeque::new(), work: None };
        match self.submit(number, request, received_ns) {
            Ok(work) => {
                slot.ordered = !work.served.decoupled();
                slot.work = Some(work);
            }
            Err(error) => {
                let response = ModelInferResponse { id, ..Default::default() };
                slot.outgoing.push_back(Outgoing::Error(error, response));
                slot.done = true;
            }
        }
        self.slots.insert(number, slot);
    }

    fn submit(
        &self,
        number: u64,
        request: ModelInferRequest,
        received_ns: u64,
    ) -> Result<Accepted, Error> {
        let in_flight = self.ctx.state.begin_request();
        let served = infer::find(&self.ctx, &request.model_name, &request.model_version)?;
        let model_name = request.model_name.clone();
        let model_version = request.model_version.clone();
        let submitted = message::read(&served, request).and_then(|(mut draft, asked)| {
            draft.streaming = true;
            draft.deadline_ns = self.deadline_ns;
            let empty_final_response = draft.parameters.empty_final_response;
            let sink = sink::channel(number, self.sink.clone());
            Ok((draft.submit(&self.ctx, &served, received_ns, sink)?, asked, empty_final_response))
        });
        let (reply, asked, empty_final_response) =
            submitted.map_err(|e| refused(&served, received_ns, e))?;
        Ok(Accepted {
            served,
            asked,
            model_name,
            model_version,
            empty_final_response,
            held: None,
            guard: CancelGuard::new(reply),
            _in_flight: in_flight,
        })
    }

    /// Notes what came back for one request.
    fn take(&mut self, item: StreamItem) {
        let Some(slot) = self.slots.get_mut(&item.request) else { return };
        let Some(work) = &mut slot.work else { return };
        let ordered = slot.ordered;
        match item.response {
            Err(error) => slot.outgoing.push_back(work.error(error)),
            Ok(response) => {
                // An ordinary model's response is kept back until the next, or the end, is here.
                if let Some(earlier) = work.held.take() {
                    let last = item.last && response.is_none();
                    slot.outgoing.push_back(work.response(earlier, last));
                    if last {
                        slot.done = true;
                    }
                }
                match response {
                    Some(response) if ordered && !item.last => work.held = Some(response),
                    Some(response) => slot.outgoing.push_back(work.response(response, item.last)),
                    None if slot.done => {}
                    None if ordered => {
                        let error = Error::internal("expected a single response, got 0");
                        slot.outgoing.push_back(work.error(error));
                    }
                    None if work.empty_final_response => {
                        let response = ModelStreamInferResponse {
                            infer_response: Some(work.bare()),
                            ..Default::default()
                        };
                        slot.outgoing.push_back(Outgoing::Response(response));
                    }
                    None => {}
                }
            }
        }
        if item.last {
            slot.done = true;
            work.guard.disarm();
        }
    }

    /// The next answer that may leave now. Slots that have nothing more to say go.
    fn next_outgoing(&mut self) -> Option<Outgoing> {
        let mut blocked = false;
        let mut empty = Vec::new();
        let mut found = None;
        for (number, slot) in &mut self.slots {
            if slot.ordered && blocked {
                continue;
            }
            found = slot.outgoing.pop_front();
            if slot.outgoing.is_empty() && slot.done {
                empty.push(*number);
            } else if slot.ordered {
                blocked = true;
            }
            if found.is_some() {
                break;
            }
        }
        for number in empty {
            self.slots.remove(&number);
        }
        found
    }
}

impl Accepted {
    fn response(&self, response: InferResponse, last: bool) -> Outgoing {
        match message::write(&self.served, &self.asked, response) {
            Ok((mut head, payloads)) => {
                message::mark_final(&mut head, last);
                head.raw_output_contents = payloads;
                Outgoing::Response(ModelStreamInferResponse {
                    infer_response: Some(head),
                    ..Default::default()
                })
            }
            Err(error) => self.error(error),
        }
    }

    fn error(&self, error: Error) -> Outgoing {
        Outgoing::Error(error, self.bare())
    }

    /// The last answer of a request, without a result.
    fn bare(&self) -> ModelInferResponse {
        let mut head = ModelInferResponse {
            model_name: self.model_name.clone(),
            model_version: self.model_version.clone(),
            id: self.asked.id.clone(),
            ..Default::default()
        };
        message::mark_final(&mut head, true);
        head
    }
}
