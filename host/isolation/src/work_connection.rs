//! The work connection of an instance, the host's end: sends batches and cancellations.

use super::exit_reason::KillReason;
use super::messages::{CancelMessage, ExecuteBatch, RequestMessage, control_request};
use super::outstanding::{OutstandingRequests, UntakenBatches};
use super::process::Process;
use super::regions::SentRegions;
use super::responses::{ResponseReader, Responses};
use super::work_channel::WorkSender;
use std::sync::{Arc, Weak};
use trtserver_base::error::{Code, Result};
use trtserver_request::shared_region::RegionObserver;
use trtserver_request::{CancelObserver, InferRequest};

/// The host's end of an instance's work connection: sends batches and cancellations to the child.
pub struct WorkConnection {
    sender: WorkSender,
    pub process: Arc<Process>,
    ordinal: u32,
    pub outstanding: OutstandingRequests,
    responses: Arc<Responses>,
    /// Client shared memory that the child has opened.
    regions: SentRegions,
    me: Weak<WorkConnection>,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SendOutcome {
    Delivered,
    /// The child is gone or about to be killed; the requests are unchanged.
    ChildGone,
    /// The child would have to read first; the requests are unchanged.
    WouldWait,
}

impl WorkConnection {
    pub fn new(
        sender: WorkSender,
        process: Arc<Process>,
        ordinal: u32,
        responses: &Arc<Responses>,
    ) -> Arc<Self> {
        let (outstanding, regions) = (OutstandingRequests::new(), SentRegions::default());
        Arc::new_cyclic(|me| {
            let (me, responses) = (me.clone(), Arc::clone(responses));
            Self { sender, process, ordinal, outstanding, responses, regions, me }
        })
    }

    /// Sends the requests as one batch of the messages that `encode` makes. `gpu` is that of the
    /// instance. `unshare` returns the loans that `encode` took, if the batch is not sent.
    ///
    /// # Errors
    /// The message is too large. `requests` are unchanged.
    pub fn send(
        &self,
        batch: &mut ExecuteBatch,
        requests: &mut Vec<InferRequest>,
        gpu: Option<i32>,
        may_wait: bool,
        mut encode: impl FnMut(u64, &InferRequest) -> RequestMessage,
        unshare: impl FnOnce(&ExecuteBatch),
    ) -> Result<SendOutcome> {
        if let Err(e) = self.regions.send(requests, gpu, &self.sender, &self.me) {
            self.process.connection_lost(&format!("stopped reading requests ({e})"));
            return Ok(SendOutcome::ChildGone);
        }
        batch.requests.clear();
        let messages = &mut batch.requests;
        let encode = |key, request: &_| messages.push(encode(key, request));
        let Some(sent) = self.outstanding.add(requests, encode) else {
            return Ok(SendOutcome::ChildGone);
        };
        let position = match may_wait {
            true => self.sender.send(batch).map(Some),
            false => self.sender.send_now(batch),
        };
        match position {
            Ok(None) => {
                self.outstanding.take_back(&sent, requests, || unshare(batch));
                return Ok(SendOutcome::WouldWait);
            }
            Ok(Some(position)) => {
                self.outstanding.sent(batch.id, &sent, position, self.sender.taken());
            }
            Err(e) => {
                // A partial message is not executed. Requests that are no longer outstanding were
                // failed by the supervisor.
                self.outstanding.take_back(&sent, requests, || unshare(batch));
                if e.code == Code::InvalidArg {
                    return Err(e);
                }
                // If it is alive, it has not read for the whole write timeout.
                self.process.connection_lost(&format!("stopped reading requests ({e})"));
                return Ok(if requests.is_empty() {
                    SendOutcome::Delivered
                } else {
                    SendOutcome::ChildGone
                });
            }
        }
        for (responder, key) in sent {
            if responder.cancel_token.notify(self.me.clone(), key) {
                self.cancelled(key);
            }
        }
        Ok(SendOutcome::Delivered)
    }

    /// See [`Responses::poll`].
    pub fn poll(&self, to_the_end: bool) {
        self.responses.poll(to_the_end, &self.outstanding, &self.process);
    }

    /// Reads responses until the child is gone or is killed.
    pub fn read(&self, reader: &mut ResponseReader) {
        reader.read(&self.outstanding, &self.process);
    }

    /// Time that the child took for the last execution; 0 before the first.
    pub fn execution_ns(&self) -> u64 {
        self.responses.execution_ns()
    }

    /// Removes the batches that the child, which has ended, has not begun.
    pub fn untaken(&self) -> UntakenBatches {
        let late = matches!(self.process.kill_reason(), Some(KillReason::ResponseTimeout(_)));
        self.outstanding.untaken(self.sender.taken(), late)
    }

    /// Sends nothing any more. Responses that were received already can still be read.
    pub fn close(&self) {
        self.outstanding.close();
        self.sender.shut_down();
    }
}

impl RegionObserver for WorkConnection {
    fn region_dropped(&self, number: u64) {
        self.regions.dropped(number, &self.sender);
    }
}

impl CancelObserver for WorkConnection {
    /// Notifies the child of a cancelled request, if that does not block.
    fn cancelled(&self, key: u64) {
        if self.outstanding.contains(key) {
            let cancel = CancelMessage { ordinal: self.ordinal, key };
            self.process.try_notify(control_request::RequestKind::Cancel(cancel));
        }
    }
}
