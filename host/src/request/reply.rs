//! The answer side of a request: where responses go, whether anybody still waits, and the accounting.
//!
//! A reply ends exactly once. Whoever ends it a second time gets an error back and nobody is told
//! twice; if everybody lets go of it without an end, the caller gets an error instead of silence.

use super::signature::Signature;
use super::state::SequenceMemory;
use super::tensor::WantedOutput;
use super::{InferRequest, InferResponse};
use crate::clock::now_ns;
use crate::error::{Code, Error, Result};
use crate::stats::{Execution, FailureReason, VersionStats};
use crate::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// Where responses go. Must hand over and return, never block or call back into the reply. To hand over may be to push
/// a request into another queue, as the steps of an ensemble do.
pub trait ResponseSink: Send {
    /// `last` = nothing follows. An error is always last. `Ok(None)` ends a stream without data.
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool);
}

/// A sink that who waits for the answer has, too: it needs no memory beyond that.
pub trait SharedSink: Send + Sync {
    /// As [`ResponseSink::send`]. One at a time.
    fn send(&self, response: Result<Option<InferResponse>>, last: bool);

    /// Nothing comes any more, whether a last response was sent or not.
    fn closed(&self);
}

/// See [`ResponseSink`] and [`SharedSink`].
pub enum Sink {
    Own(Box<dyn ResponseSink>),
    Shared(Ending),
}

/// Tells a shared sink when nobody can send any more.
pub struct Ending(Arc<dyn SharedSink>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.closed();
    }
}

impl Sink {
    pub fn shared(sink: Arc<dyn SharedSink>) -> Self {
        Self::Shared(Ending(sink))
    }

    pub fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        match self {
            Self::Own(sink) => sink.send(response, last),
            Self::Shared(sink) => sink.0.send(response, last),
        }
    }
}

impl<S: ResponseSink + 'static> From<S> for Sink {
    fn from(sink: S) -> Self {
        Self::Own(Box::new(sink))
    }
}

/// Collects the one response that a caller takes who takes exactly one.
#[derive(Default)]
pub struct Single {
    first: Option<InferResponse>,
    count: usize,
}

impl Single {
    /// What a sink was told; gives the answer once it is complete.
    pub fn put(
        &mut self,
        response: Result<Option<InferResponse>>,
        last: bool,
    ) -> Option<Result<InferResponse>> {
        match response {
            Err(error) => return Some(Err(error)),
            Ok(None) => {}
            Ok(Some(response)) => {
                self.count += 1;
                self.first.get_or_insert(response);
            }
        }
        last.then(|| match (self.first.take(), self.count) {
            (Some(response), 1) => Ok(response),
            (_, n) => Err(Error::internal(format!("expected a single response, got {n}"))),
        })
    }
}

/// Who has a request: the queue that it waits in, the process or the plugin that executes it.
pub trait Waiting: Send + Sync {
    /// Nobody waits for the answer to the request with this ticket any more. Must not block.
    fn cancelled(&self, ticket: u64);
}

/// See the module text.
pub struct Reply {
    /// Non-zero: nobody waits any more. Plugins poll this very word.
    cancelled: AtomicU32,
    received_ns: u64,
    signature: Arc<Signature>,
    /// `None`: nobody asked for it, and it counts nowhere.
    stats: Option<Arc<VersionStats>>,
    state: Mutex<State>,
}

/// A response on its way to the sink.
struct Answer {
    result: Result<Option<InferResponse>>,
    last: bool,
    /// To be told after the last one.
    execution: Option<Ended>,
}

/// Tells its execution, whatever happens, that the reply has ended.
struct Ended(Arc<Execution>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.reply_ended();
    }
}

struct State {
    /// Absent while a response goes through it, and after the last one.
    sink: Option<Sink>,
    ended: bool,
    /// Somebody sends responses; he will find those that come meanwhile.
    sending: bool,
    unsent: VecDeque<Answer>,
    batch: u32,
    wanted: SmallVec<[WantedOutput; 2]>,
    /// When the request entered the queue.
    queued_ns: u64,
    /// The execution that answers it, once it was taken from the queue.
    execution: Option<Arc<Execution>>,
    /// Where it waits, and its ticket there.
    place: Option<(Weak<dyn Waiting>, u64)>,
    /// States of its sequence, which the answer may write.
    memory: Option<SequenceMemory>,
}

impl Reply {
    pub fn new(
        received_ns: u64,
        signature: Arc<Signature>,
        stats: Arc<VersionStats>,
        sink: impl Into<Sink>,
    ) -> Arc<Self> {
        Self::make(received_ns, signature, Some(stats), sink.into())
    }

    /// The reply of a request that the host made for itself: it counts nowhere.
    pub fn uncounted(
        received_ns: u64,
        signature: Arc<Signature>,
        sink: impl Into<Sink>,
    ) -> Arc<Self> {
        Self::make(received_ns, signature, None, sink.into())
    }

    /// Somebody asked for it: not a null or warm-up request.
    pub fn is_counted(&self) -> bool {
        self.stats.is_some()
    }

    fn make(
        received_ns: u64,
        signature: Arc<Signature>,
        stats: Option<Arc<VersionStats>>,
        sink: Sink,
    ) -> Arc<Self> {
        let state = State {
            sink: Some(sink),
            ended: false,
            sending: false,
            unsent: VecDeque::new(),
            batch: 0,
            wanted: SmallVec::new(),
            queued_ns: 0,
            execution: None,
            place: None,
            memory: None,
        };
        Arc::new(Self {
            cancelled: AtomicU32::new(0),
            received_ns,
            signature,
            stats,
            state: Mutex::new(state),
        })
    }

    /// When the first byte of the request was seen.
    pub fn received_ns(&self) -> u64 {
        self.received_ns
    }

    /// Nobody waits any more: the request leaves its queue at once, or its plugin may stop early. Whoever has it is told
    /// once.
    pub fn cancel(&self) {
        self.cancelled.store(1, Ordering::SeqCst);
        let place = self.lock().place.take();
        // The queue answers the reply: not under its lock.
        if let Some((queue, ticket)) = place
            && let Some(queue) = queue.upgrade()
        {
            queue.cancelled(ticket);
        }
    }

    /// `queue` has the request and is told should the caller go away. True: he went before, of which it is not told.
    pub fn waits_in(&self, queue: Weak<dyn Waiting>, ticket: u64) -> bool {
        self.lock().place = Some((queue, ticket));
        self.cancelled.load(Ordering::SeqCst) != 0
    }

    /// Gives the reply another sink, made of the one it has.
    pub fn wrap(&self, wrapper: impl FnOnce(Sink) -> Sink) {
        let mut state = self.lock();
        state.sink = state.sink.take().map(wrapper);
    }

    /// The states of its sequence: the answer may write them.
    pub fn remember(&self, memory: SequenceMemory) {
        self.lock().memory = Some(memory);
    }

    pub fn memory(&self) -> Option<SequenceMemory> {
        self.lock().memory.clone()
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) != 0
    }

    /// The word that plugins poll; lives as long as the reply.
    pub fn cancelled_word(&self) -> *const u32 {
        self.cancelled.as_ptr()
    }

    /// `request` entered a queue.
    pub fn queued(request: &InferRequest, at_ns: u64) {
        let mut state = request.reply.lock();
        state.batch = request.batch;
        state.wanted.clone_from(&request.outputs);
        state.queued_ns = at_ns;
    }

    /// The request was taken from its queue into `execution`.
    pub fn taken(&self, execution: Arc<Execution>) {
        let mut state = self.lock();
        state.execution = Some(execution);
        state.place = None;
    }

    pub fn signature(&self) -> &Arc<Signature> {
        &self.signature
    }

    pub fn batch(&self) -> u32 {
        self.lock().batch
    }

    /// Place of the output number `index` among those that the caller asked for, and how many he did.
    pub fn wanted(&self, index: usize) -> (Option<usize>, usize) {
        let state = self.lock();
        (state.wanted.iter().position(|w| w.index == index), state.wanted.len())
    }

    /// Number of the output that the caller asked for in place `place`.
    pub fn wanted_at(&self, place: usize) -> Option<usize> {
        self.lock().wanted.get(place).map(|w| w.index)
    }

    pub fn execution(&self) -> Option<Arc<Execution>> {
        self.lock().execution.clone()
    }

    pub fn queued_ns(&self) -> u64 {
        self.lock().queued_ns
    }

    pub fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Sends a response and goes on.
    pub fn send(&self, response: InferResponse) -> Result<()> {
        let state = self.lock();
        if state.ended {
            return Err(ended_twice());
        }
        self.pass_on(state, Answer { result: Ok(Some(response)), last: false, execution: None });
        Ok(())
    }

    /// Brings an answer to the sink, behind those before it. Without the lock: what the sink lets go of may be the
    /// memory of a plugin, who is told.
    fn pass_on<'a>(&'a self, mut state: MutexGuard<'a, State>, answer: Answer) {
        if state.sending {
            state.unsent.push_back(answer);
            return;
        }
        state.sending = true;
        let mut next = Some(answer);
        // Left behind by a sink that panicked.
        if !state.unsent.is_empty() {
            state.unsent.extend(next);
            next = state.unsent.pop_front();
        }
        while let Some(Answer { result, last, execution }) = next {
            let mut lent = Lent { reply: self, sink: state.sink.take() };
            drop(state);
            if let Some(sink) = &mut lent.sink {
                sink.send(result, last);
            }
            drop(execution);
            if last {
                lent.sink = None;
                return;
            }
            drop(lent);
            state = self.lock();
            next = state.unsent.pop_front();
        }
        state.sending = false;
    }

    /// Ends the reply: with a last response, with an error, or (`Ok(None)`) as the end of a stream.
    ///
    /// The counters move before the caller is told, so that a caller who asks for statistics next finds himself in them.
    pub fn end(&self, result: Result<Option<InferResponse>>) -> Result<()> {
        let reason = match &result {
            Err(e) if e.code == Code::Cancelled => FailureReason::Canceled,
            Err(_) => FailureReason::Backend,
            Ok(_) => FailureReason::Other,
        };
        self.end_as(result, reason)
    }

    /// Ends the reply with an error that is not the backend's, e.g. a full queue.
    pub fn fail(&self, error: Error, reason: FailureReason) -> Result<()> {
        self.end_as(Err(error), reason)
    }

    fn end_as(&self, result: Result<Option<InferResponse>>, reason: FailureReason) -> Result<()> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.ended, true) {
            return Err(ended_twice());
        }
        let now = now_ns();
        let execution = state.execution.take();
        if let Some(stats) = &self.stats {
            match (&result, &execution) {
                (Ok(_), Some(execution)) => {
                    stats.success(state.batch, self.received_ns, state.queued_ns, now, execution);
                }
                (Ok(_), None) => {}
                (Err(_), _) => {
                    stats.failure(state.batch, now.saturating_sub(self.received_ns), reason);
                }
            }
            if self.is_cancelled() {
                stats.cancelled(execution.is_some());
            }
        }
        self.pass_on(state, Answer { result, last: true, execution: execution.map(Ended) });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A sink while it is called. It comes back also when it panics, which must not silence later answers.
struct Lent<'a> {
    reply: &'a Reply,
    sink: Option<Sink>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if self.sink.is_some() {
            let mut state = self.reply.lock();
            state.sink = self.sink.take();
            state.sending &= !std::thread::panicking();
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.state.get_mut().ended {
            return;
        }
        let _ = self.end(Err(Error::internal(
            "the request was dropped without an answer; this is a fault of the server or of the model's backend",
        )));
    }
}

fn ended_twice() -> Error {
    Error::internal("the reply has already ended")
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
