//! Answers on their way to the host, over the work connection of their instance.

use super::control::failure;
use crate::arena::{Arena, Loan};
use crate::error::{Code, Error, Result};
use crate::plugin::isolated::messages::{Answer, Output, Param, Response, param};
use crate::plugin::isolated::wire::Sender;
use crate::plugin::times;
use crate::request::buffer::AlignedBuf;
use crate::request::{InferResponse, OutputTensor, Parameter, Responder, ResponseSink, Signature};
use crate::stats::Execution;
use crate::sync::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

/// Cancellations that are remembered because their calls may still be on their way: they travel over another connection
/// and may be faster. One that comes after the end of its call is remembered for nothing, until others follow.
const EARLY: usize = 256;

/// The answering half of an instance's work connection.
pub struct Link {
    sender: Sender,
    arena: Arc<Arena>,
    signature: Arc<Signature>,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    /// Those without a last answer, by key.
    open: HashMap<u64, Weak<Responder>>,
    /// Cancelled before they came.
    early: VecDeque<u64>,
}

impl Link {
    pub fn new(sender: Sender, arena: &Arc<Arena>, signature: &Arc<Signature>) -> Arc<Self> {
        let (arena, signature) = (Arc::clone(arena), Arc::clone(signature));
        Arc::new(Self { sender, arena, signature, calls: Mutex::default() })
    }

    /// A call has come.
    pub fn open(&self, key: u64, reply: &Arc<Responder>) {
        let mut calls = self.lock();
        calls.open.insert(key, Arc::downgrade(reply));
        let early = calls.early.iter().position(|k| *k == key);
        if let Some(at) = early {
            calls.early.remove(at);
            drop(calls);
            reply.cancel_token.cancel();
        }
    }

    /// Nobody waits for the call any more.
    pub fn cancel(&self, key: u64) {
        let mut calls = self.lock();
        let Some(reply) = calls.open.get(&key) else {
            if calls.early.len() == EARLY {
                calls.early.pop_front();
            }
            calls.early.push_back(key);
            return;
        };
        let reply = reply.upgrade();
        // What is dropped last answers.
        drop(calls);
        if let Some(reply) = reply {
            reply.cancel_token.cancel();
        }
    }

    /// Answers a call of which no request could be made.
    pub fn refuse(&self, key: u64, error: &Error) {
        let failure = Some(failure(error));
        let _ = self.send(Answer { key, last: true, failure, ..Answer::default() });
    }

    /// No answer follows.
    pub fn shut_down(&self) {
        self.sender.shut_down();
    }

    /// What cannot be sent has nobody who waits for it: the host has given the instance up, or is gone, which the
    /// control connection tells.
    ///
    /// An answer that is too long for a message becomes an error, and the last; true, if it was the last.
    fn send(&self, answer: Answer) -> bool {
        let last = answer.last;
        if let Err(e) = self.sender.send(&answer)
            && e.code == Code::InvalidArg
        {
            let outputs = answer.response.as_ref().map_or(&[][..], |response| &response.outputs);
            self.take_back(outputs);
            let e = Error::internal(format!("model '{}': the answer: {e}", self.signature.model));
            let failure = Some(failure(&e));
            let _ = self.sender.send(&Answer { last: true, failure, response: None, ..answer });
            return true;
        }
        last
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock()
    }

    fn response(&self, response: InferResponse) -> Result<Response> {
        let mut outputs = Vec::with_capacity(response.outputs.len());
        for output in response.outputs {
            let output = self.output(output).inspect_err(|_| self.take_back(&outputs))?;
            outputs.push(output);
        }
        let params = response.parameters.into_iter().map(|(key, value)| {
            let value = Some(match value {
                Parameter::String(s) => param::Value::String(s),
                Parameter::Int(i) => param::Value::Int(i),
                Parameter::Bool(b) => param::Value::Bool(b),
                Parameter::Double(d) => param::Value::Double(d),
            });
            Param { key, value }
        });
        Ok(Response { outputs, params: params.collect() })
    }

    /// Lends the tensor to the host. From then on this process has no further use for it.
    fn output(&self, output: OutputTensor) -> Result<Output> {
        let OutputTensor { name, dtype, shape, data } = output;
        // The name is the signature's own.
        let index = self.signature.outputs.iter().position(|o| Arc::ptr_eq(&o.name, &name));
        let loan = if data.is_empty() { None } else { self.arena.lend(&data) };
        let loan = match loan {
            Some(loan) => loan,
            None => self.lend_copy(&data).ok_or_else(|| {
                Error::internal(format!(
                    "model '{}': there is no memory for the {} bytes of output '{name}'",
                    self.signature.model,
                    data.len()
                ))
            })?,
        };
        Ok(Output {
            index: index.unwrap_or(usize::MAX) as u32,
            dtype: dtype.number(),
            shape: shape.to_vec(),
            offset: loan.offset,
            bytes: data.len() as u64,
            slot: loan.slot,
        })
    }

    /// The host will not hear of these.
    fn take_back(&self, outputs: &[Output]) {
        outputs.iter().for_each(|output| self.arena.take_back(output.slot));
    }

    /// Of bytes that lie elsewhere, or of no bytes, which lie nowhere.
    fn lend_copy(&self, data: &[u8]) -> Option<Loan> {
        let end = [0];
        let block = AlignedBuf::try_copy_of(&[data, &end])?;
        self.arena.lend(block.as_ref().get(..data.len())?)
    }
}

/// The sink of one call.
pub struct ToHost {
    link: Arc<Link>,
    key: u64,
    execution: Arc<Execution>,
    /// An answer could not be sent, and the host was told so.
    over: bool,
}

impl ToHost {
    pub fn new(link: &Arc<Link>, key: u64, execution: &Arc<Execution>) -> Self {
        let (link, execution) = (Arc::clone(link), Arc::clone(execution));
        Self { link, key, execution, over: false }
    }
}

impl ResponseSink for ToHost {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        if last {
            self.link.lock().open.remove(&self.key);
        }
        if self.over {
            return;
        }
        let made = response.and_then(|r| r.map(|r| self.link.response(r)).transpose());
        let (response, failure) = match made {
            Ok(response) => (response, None),
            Err(e) => (None, Some(failure(&e))),
        };
        let last = last || failure.is_some();
        let times = times(&self.execution).unwrap_or_else(|| {
            let [compute, output] = self.execution.noted_times();
            [0, compute, output, 0]
        });
        let (key, times) = (self.key, times.to_vec());
        self.over = self.link.send(Answer { key, last, response, failure, times });
    }
}
