//! The requests of one instance that its process has not answered yet: sent, answered, cancelled, failed.

use super::messages::{Batch, Call, Cancel, ask};
use super::process::Process;
use super::responses::Answers;
use super::wire::Sender;
use crate::error::{Code, Error, Result};
use crate::request::{CancelObserver, InferRequest, Responder};
use crate::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The work connection of one instance with one process, as the host writes it.
pub struct Line {
    sender: Sender,
    pub process: Arc<Process>,
    ordinal: u32,
    calls: Mutex<Calls>,
    /// Where the instance's own thread reads the answers that it waits for, if no other thread does.
    pub reading: Mutex<Option<Answers>>,
    me: Weak<Line>,
}

struct Calls {
    /// By key.
    open: HashMap<u64, InferRequest>,
    next: u64,
    /// Nothing more is sent.
    closed: bool,
    /// When the process last did something: got work while it had none, or answered.
    moved: Instant,
}

/// A call that was answered.
pub struct Answered {
    pub reply: Arc<Responder>,
    /// Kept up to here for the inputs, if it was the last answer.
    _request: Option<InferRequest>,
}

impl Line {
    pub fn new(
        sender: Sender,
        process: Arc<Process>,
        ordinal: u32,
        reading: Option<Answers>,
    ) -> Arc<Self> {
        let calls = Calls { open: HashMap::new(), next: 1, closed: false, moved: Instant::now() };
        let (calls, reading) = (Mutex::new(calls), Mutex::new(reading));
        Arc::new_cyclic(|me| Self { sender, process, ordinal, calls, reading, me: me.clone() })
    }

    /// Sends the requests as one batch, each as `call` shows it. False: the process is gone or about to be, and they are
    /// still there.
    ///
    /// # Errors
    /// They are too much for one message. They are still there; nothing that `call` has lent will be counted off.
    pub fn send(
        &self,
        batch: &mut Batch,
        requests: &mut Vec<InferRequest>,
        mut call: impl FnMut(u64, &InferRequest) -> Call,
    ) -> Result<bool> {
        let mut sent: SmallVec<[(Arc<Responder>, u64); 8]> = SmallVec::new();
        let mut calls = self.lock();
        if calls.closed {
            return Ok(false);
        }
        if calls.open.is_empty() {
            calls.moved = Instant::now();
        }
        batch.calls.clear();
        for request in requests.drain(..) {
            let key = calls.next;
            calls.next += 1;
            // Under the lock: what is lent after the end of a process would never come back.
            batch.calls.push(call(key, &request));
            sent.push((Arc::clone(&request.responder), key));
            calls.open.insert(key, request);
        }
        drop(calls);
        if let Err(e) = self.sender.send(batch) {
            // Nobody executes half a message. What is not there any more was answered by whoever ended the process.
            let mut calls = self.lock();
            requests.extend(sent.iter().filter_map(|(_, key)| calls.open.remove(key)));
            drop(calls);
            if e.code == Code::InvalidArg {
                return Err(e);
            }
            // If it lives, it has not read for a long time, and must not be waited for.
            self.process.lost(&format!("does not take requests any more ({e})"));
            return Ok(requests.is_empty());
        }
        for (reply, key) in sent {
            if reply.cancel_token.notify(self.me.clone(), key) {
                self.cancelled(key);
            }
        }
        Ok(true)
    }

    /// The process has answered a call; `None` when there is no such call.
    pub fn answered(&self, key: u64, last: bool) -> Option<Answered> {
        let mut calls = self.lock();
        calls.moved = Instant::now();
        if last {
            let request = calls.open.remove(&key)?;
            return Some(Answered {
                reply: Arc::clone(&request.responder),
                _request: Some(request),
            });
        }
        let reply = Arc::clone(&calls.open.get(&key)?.responder);
        Some(Answered { reply, _request: None })
    }

    /// How much longer the process may be silent; `None` when it owed an answer for too long.
    pub fn patience(&self, limit: Duration) -> Option<Duration> {
        let calls = self.lock();
        if calls.open.is_empty() {
            return Some(limit);
        }
        limit.checked_sub(calls.moved.elapsed()).filter(|left| !left.is_zero())
    }

    /// When the process last did something, if it owes answers.
    pub fn silent_since(&self) -> Option<Instant> {
        let calls = self.lock();
        (!calls.open.is_empty()).then_some(calls.moved)
    }

    /// Whether the process owes answers.
    pub fn owes(&self) -> bool {
        !self.lock().open.is_empty()
    }

    /// Nothing is sent any more, and what was received meanwhile is all that there will be.
    pub fn close(&self) {
        self.lock().closed = true;
        self.sender.shut_down();
    }

    /// Ends what is still open with this error.
    pub fn fail(&self, error: &Error) {
        let open = std::mem::take(&mut self.lock().open);
        for request in open.into_values() {
            let _ = request.responder.finish(Err(error.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock()
    }
}

impl CancelObserver for Line {
    /// The caller of the call with this key has gone away; its process is told if that takes no waiting.
    fn cancelled(&self, key: u64) {
        if self.lock().open.contains_key(&key) {
            let cancel = Cancel { ordinal: self.ordinal, key };
            self.process.nudge(ask::What::Cancel(cancel));
        }
    }
}
