//! Sends responses to the host over the work connection of an instance.

use super::unread::StreamRequest;
use crate::facts::failure_message;
use crate::messages::{ActivityMessage, BatchPart, OutputMessage, ResponseData, ResponseMessage};
use crate::params;
use crate::work_channel::WorkSender;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use trtserver_base::arena::{Arena, SharedRange};
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_base::stats::BatchExecution;
use trtserver_plugin_host::execution_times;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::{InferResponse, ModelSignature, OutputTensor, Responder, ResponseSink};
use trtserver_request_trace::ActiveTrace;

/// Limit of remembered cancellations. They arrive over another connection and may overtake their
/// requests. One that arrives after the final response is remembered, too, until others displace
/// it.
const MAX_EARLY: usize = 256;

/// The sending half of a work connection, and the requests without a final response.
pub struct ResponseSender {
    sender: WorkSender,
    arena: Arc<Arena>,
    signature: Arc<ModelSignature>,
    state: Mutex<OutstandingResponders>,
}

#[derive(Default)]
struct OutstandingResponders {
    /// Requests without a final response, by key.
    outstanding: HashMap<u64, Weak<Responder>>,
    /// Keys that were cancelled before their requests arrived.
    early_cancels: VecDeque<u64>,
}

impl ResponseSender {
    pub fn new(
        sender: WorkSender,
        arena: &Arc<Arena>,
        signature: &Arc<ModelSignature>,
    ) -> Arc<Self> {
        let (arena, signature) = (Arc::clone(arena), Arc::clone(signature));
        Arc::new(Self { sender, arena, signature, state: Mutex::default() })
    }

    /// Registers a request.
    pub fn open(&self, key: u64, responder: &Arc<Responder>) {
        let mut state = self.lock();
        state.outstanding.insert(key, Arc::downgrade(responder));
        let early = state.early_cancels.iter().position(|k| *k == key);
        if let Some(at) = early {
            state.early_cancels.remove(at);
            drop(state);
            responder.cancel_token.cancel();
        }
    }

    /// Cancels a request, also before it arrives.
    pub fn cancel(&self, key: u64) {
        let mut state = self.lock();
        let Some(responder) = state.outstanding.get(&key) else {
            if state.early_cancels.len() == MAX_EARLY {
                state.early_cancels.pop_front();
            }
            state.early_cancels.push_back(key);
            return;
        };
        let responder = responder.upgrade();
        // Dropping the last reference to a responder sends a response, which takes this lock.
        drop(state);
        if let Some(responder) = responder {
            responder.cancel_token.cancel();
        }
    }

    /// Fails a request that could not be decoded.
    pub fn refuse(&self, key: u64, error: &Error) {
        let failure = Some(failure_message(error));
        let _ =
            self.send(ResponseMessage { key, last: true, failure, ..ResponseMessage::default() });
    }

    /// Closes the connection.
    pub fn shut_down(&self) {
        self.sender.shut_down();
    }

    /// Sends a response; returns whether it was the last. One that is too long for a message is
    /// replaced by an error, which is the last. Other failures are ignored: the host closed the
    /// connection, or is gone, which the control connection detects.
    fn send(&self, response: ResponseMessage) -> bool {
        let last = response.last;
        if let Err(e) = self.sender.send(&response)
            && e.code == Code::InvalidArg
        {
            let outputs = response.data.as_ref().map_or(&[][..], |data| &data.outputs);
            self.unshare(outputs);
            let e = Error::internal(format!("model '{}': the response: {e}", self.signature.model));
            let failure = Some(failure_message(&e));
            let _ =
                self.sender.send(&ResponseMessage { last: true, failure, data: None, ..response });
            return true;
        }
        last
    }

    fn lock(&self) -> MutexGuard<'_, OutstandingResponders> {
        self.state.lock()
    }

    fn encode(&self, response: InferResponse) -> Result<ResponseData> {
        let mut outputs = Vec::with_capacity(response.outputs.len());
        for output in response.outputs {
            let output = self.output(output).inspect_err(|_| self.unshare(&outputs))?;
            outputs.push(output);
        }
        let params = response.parameters.into_iter().map(params::encode_parameter).collect();
        Ok(ResponseData { outputs, params })
    }

    /// Shares the tensor with the host.
    fn output(&self, output: OutputTensor) -> Result<OutputMessage> {
        let OutputTensor { name, dtype, shape, data } = output;
        // The name is a clone of the signature's.
        let index = self.signature.outputs.iter().position(|o| Arc::ptr_eq(&o.name, &name));
        let index = index.unwrap_or(usize::MAX) as u32;
        let (dtype, shape, bytes) = (dtype.number(), shape.to_vec(), data.len() as u64);
        if data.placed().is_some() {
            let in_destination = true;
            return Ok(OutputMessage {
                index,
                dtype,
                shape,
                bytes,
                in_destination,
                ..OutputMessage::default()
            });
        }
        let data = data.payload();
        let shared = if data.is_empty() { None } else { self.arena.share(data) };
        let shared = match shared {
            Some(shared) => shared,
            None => self.share_copy(data).ok_or_else(|| {
                Error::internal(format!(
                    "model '{}': shared-memory arena exhausted: {} bytes for output '{name}' cannot be allocated",
                    self.signature.model,
                    data.len()
                ))
            })?,
        };
        let SharedRange { slot, offset } = shared;
        Ok(OutputMessage { index, dtype, shape, offset, bytes, slot, in_destination: false })
    }

    /// Removes the host's references to outputs that were not sent.
    fn unshare(&self, outputs: &[OutputMessage]) {
        let shared = outputs.iter().filter(|output| !output.in_destination);
        shared.for_each(|output| self.arena.unshare(output.slot));
    }

    /// Shares a copy of bytes that are not in the arena, or of an empty tensor.
    fn share_copy(&self, data: &[u8]) -> Option<SharedRange> {
        let end = [0];
        let block = AlignedBuf::try_copy(None, &[data, &end], LedgerHolder::Output).ok()?;
        self.arena.share(block.as_ref().get(..data.len())?)
    }
}

/// What the backend has reported since the last response.
fn activities(trace: &ActiveTrace) -> Vec<ActivityMessage> {
    let reported = trace.take_reported().into_iter();
    reported.map(|(name, at_ns)| ActivityMessage { name: name.into(), at_ns }).collect()
}

/// The response sink of one request.
pub struct HostSink {
    responses: Arc<ResponseSender>,
    key: u64,
    execution: Arc<BatchExecution>,
    /// The part of the batch that the request is in, by the position of its first request.
    part: Option<(u32, Arc<BatchExecution>)>,
    stream: Option<Arc<StreamRequest>>,
    /// Collects what the backend reports, if the request is traced.
    trace: Option<Arc<ActiveTrace>>,
    /// The last response was sent, if only an error in place of one that could not be sent.
    ended: bool,
}

impl HostSink {
    /// `stream`: the request in its stream, if it is of one.
    pub fn new(
        responses: &Arc<ResponseSender>,
        key: u64,
        execution: &Arc<BatchExecution>,
        stream: Option<Arc<StreamRequest>>,
        trace: Option<Arc<ActiveTrace>>,
    ) -> Self {
        let (responses, execution) = (Arc::clone(responses), Arc::clone(execution));
        Self { responses, key, execution, part: None, stream, trace, ended: false }
    }
}

impl ResponseSink for HostSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        if last {
            self.responses.lock().outstanding.remove(&self.key);
        }
        if self.ended {
            return;
        }
        let encode = |mut response: InferResponse| {
            // Counted until the outputs are.
            let admitted = response.unread.take();
            let data = self.responses.encode(response)?;
            if let (Some(stream), Some(_)) = (&self.stream, admitted) {
                stream.share(&data.outputs);
            }
            Ok(data)
        };
        let encoded = response.and_then(|response| response.map(encode).transpose());
        let (data, failure) = match encoded {
            Ok(data) => (data, None),
            Err(e) => (None, Some(failure_message(&e))),
        };
        let last = last || failure.is_some();
        let counted = self.part.as_ref().map_or(&self.execution, |(_, part)| part);
        let times = execution_times(counted).unwrap_or_else(|| {
            let [compute, output] = counted.noted_times();
            [0, compute, output, 0]
        });
        let part = self.part.as_ref().map(|(first, part)| {
            let (first, rows, start_ns) = (*first, part.rows, part.start_ns);
            BatchPart { first, rows, start_ns }
        });
        let (key, times) = (self.key, times.to_vec());
        self.ended = self.responses.send(ResponseMessage {
            key,
            last,
            data,
            failure,
            times,
            execution_ns: now_ns().saturating_sub(self.execution.start_ns),
            part,
            activities: self.trace.as_ref().map_or_else(Vec::new, |trace| activities(trace)),
        });
    }

    fn executed_in_part(&mut self, first: u32, part: &Arc<BatchExecution>) {
        self.part = Some((first, Arc::clone(part)));
    }
}
