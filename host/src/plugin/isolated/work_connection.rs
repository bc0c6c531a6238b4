//! The work connection of an instance, the host's end: sends batches and cancellations.

use super::messages::{Cancel, ExecuteBatch, Request, control_request};
use super::outstanding::OutstandingRequests;
use super::process::Process;
use super::regions::SentRegions;
use super::responses::ResponseReader;
use super::wire::Sender;
use crate::error::{Code, Result};
use crate::request::shared_region::RegionObserver;
use crate::request::{CancelObserver, InferRequest};
use crate::sync::Mutex;
use std::sync::{Arc, Weak};

/// See the module text.
pub struct WorkConnection {
    sender: Sender,
    pub process: Arc<Process>,
    ordinal: u32,
    pub outstanding: OutstandingRequests,
    /// The receiving side, if the instance's own thread reads responses; else a thread of its own has it.
    pub reader: Mutex<Option<ResponseReader>>,
    /// Client shared memory that the child has opened.
    regions: SentRegions,
    me: Weak<WorkConnection>,
}

impl WorkConnection {
    pub fn new(
        sender: Sender,
        process: Arc<Process>,
        ordinal: u32,
        reader: Option<ResponseReader>,
    ) -> Arc<Self> {
        let (outstanding, reader) = (OutstandingRequests::new(), Mutex::new(reader));
        let regions = SentRegions::default();
        Arc::new_cyclic(|me| {
            let me = me.clone();
            Self { sender, process, ordinal, outstanding, reader, regions, me }
        })
    }

    /// Sends the requests as one batch of the messages that `encode` makes. `gpu` is that of the instance. Returns false if the child is gone or about
    /// to be killed; `requests` are unchanged then.
    ///
    /// # Errors
    /// The message is too large. `requests` are unchanged; the caller must return the loans that `encode` took.
    pub fn send(
        &self,
        batch: &mut ExecuteBatch,
        requests: &mut Vec<InferRequest>,
        gpu: Option<i32>,
        mut encode: impl FnMut(u64, &InferRequest) -> Request,
    ) -> Result<bool> {
        if let Err(e) = self.regions.send(requests, gpu, &self.sender, &self.me) {
            self.process.connection_lost(&format!("stopped reading requests ({e})"));
            return Ok(false);
        }
        batch.requests.clear();
        let messages = &mut batch.requests;
        let encode = |key, request: &_| messages.push(encode(key, request));
        let Some(sent) = self.outstanding.add(requests, encode) else { return Ok(false) };
        if let Err(e) = self.sender.send(batch) {
            // A partial message is not executed. Requests that are no longer outstanding were failed by the supervisor.
            self.outstanding.take_back(&sent, requests);
            if e.code == Code::InvalidArg {
                return Err(e);
            }
            // If it is alive, it has not read for the whole write timeout.
            self.process.connection_lost(&format!("stopped reading requests ({e})"));
            return Ok(requests.is_empty());
        }
        for (responder, key) in sent {
            if responder.cancel_token.notify(self.me.clone(), key) {
                self.cancelled(key);
            }
        }
        Ok(true)
    }

    /// Reads responses until the child is gone or is killed; with `until_idle` also until nothing is outstanding.
    pub fn read(&self, reader: &mut ResponseReader, until_idle: bool) {
        reader.read(&self.outstanding, &self.process, until_idle);
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
            let cancel = Cancel { ordinal: self.ordinal, key };
            self.process.try_notify(control_request::Kind::Cancel(cancel));
        }
    }
}
