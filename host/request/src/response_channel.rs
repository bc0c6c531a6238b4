//! Response channel: delivers the responses of one request to its sink, in order, with exactly one
//! final response.

use super::response::InferResponse;
use super::sink::Sink;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::BatchExecution;

/// The request is not in a part of its batch.
const NO_PART: u32 = u32::MAX;

pub struct ResponseChannel {
    /// Set by the caller that sends the final response.
    finished: AtomicBool,
    /// A thread is delivering; it also delivers what is added to `pending` meanwhile. Only used
    /// with the lock of `state`; inside, it would enlarge every request by a word.
    delivering: AtomicBool,
    /// Position of the first request of the part of the batch that the request is executed in, or
    /// `NO_PART`. It stands here because it fits in the padding after the flags: a field of the
    /// responder would enlarge every request.
    part: AtomicU32,
    state: Mutex<ChannelState>,
}

struct ChannelState {
    /// Taken out while a response passes through it, and after the final one.
    sink: Option<Sink>,
    pending: VecDeque<PendingResponse>,
}

struct PendingResponse {
    result: Result<Option<InferResponse>>,
    last: bool,
    /// Dropped after the final response was delivered.
    execution: Option<ExecutionGuard>,
}

/// Counts the request as finished in its execution, also when the sink panics.
struct ExecutionGuard(Arc<BatchExecution>);

impl Drop for ExecutionGuard {
    fn drop(&mut self) {
        self.0.request_finished();
    }
}

impl ResponseChannel {
    pub fn new(sink: Sink) -> Self {
        let state = Mutex::new(ChannelState { sink: Some(sink), pending: VecDeque::new() });
        let [finished, delivering] = [false; 2].map(AtomicBool::new);
        Self { finished, delivering, part: AtomicU32::new(NO_PART), state }
    }

    /// Replaces the sink by one made of it. No effect once the final response was delivered.
    pub fn wrap(&self, wrapper: impl FnOnce(Sink) -> Sink) {
        let mut state = self.state.lock();
        state.sink = state.sink.take().map(wrapper);
    }

    /// The request is executed in the part of its batch that begins at position `first`. False if
    /// it was in a part before.
    pub fn begin_part(&self, first: u32) -> bool {
        let set = self.part.compare_exchange(NO_PART, first, Ordering::AcqRel, Ordering::Relaxed);
        set.is_ok() && first != NO_PART
    }

    /// The position of the first request of its part.
    pub fn part(&self) -> Option<u32> {
        Some(self.part.load(Ordering::Acquire)).filter(|first| *first != NO_PART)
    }

    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Sends a response that is not final.
    pub fn send(&self, response: InferResponse) -> Result<()> {
        let state = self.state.lock();
        // Read under the lock, which the final response passes after the flag was set: nothing
        // follows it.
        if self.is_finished() {
            return Err(already_finished());
        }
        let result = Ok(Some(response));
        self.deliver(state, PendingResponse { result, last: false, execution: None });
        Ok(())
    }

    /// Claims the right to send the final response. The caller that gets it must call
    /// [`ResponseChannel::send_final`]; every later one gets an error.
    pub fn finish(&self) -> Result<()> {
        if self.finished.swap(true, Ordering::AcqRel) { Err(already_finished()) } else { Ok(()) }
    }

    /// Sends the final response; `execution` counts it after that.
    pub fn send_final(
        &self,
        result: Result<Option<InferResponse>>,
        execution: Option<Arc<BatchExecution>>,
    ) {
        let execution = execution.map(ExecutionGuard);
        self.deliver(self.state.lock(), PendingResponse { result, last: true, execution });
    }

    /// Delivers `response` after everything sent before it. The sink is called without the lock:
    /// what it drops may be memory of a backend, which is notified.
    fn deliver<'a>(&'a self, mut state: MutexGuard<'a, ChannelState>, response: PendingResponse) {
        if self.delivering.load(Ordering::Relaxed) {
            state.pending.push_back(response);
            return;
        }
        self.delivering.store(true, Ordering::Relaxed);
        let mut next = Some(response);
        // A sink that panicked leaves the responses behind it undelivered.
        if !state.pending.is_empty() {
            state.pending.extend(next);
            next = state.pending.pop_front();
        }
        while let Some(PendingResponse { result, last, execution }) = next {
            let sink = state.sink.take();
            drop(state);
            let mut guard = SinkGuard { channel: self, sink, panicked: true };
            if let Some(sink) = &mut guard.sink {
                sink.send(result, last);
            }
            guard.panicked = false;
            drop(execution);
            if last {
                guard.sink = None;
                return;
            }
            drop(guard);
            state = self.state.lock();
            next = state.pending.pop_front();
        }
        self.delivering.store(false, Ordering::Relaxed);
    }
}

/// Holds the sink during a call. Puts it back also when it panics, so that later responses still
/// reach it.
struct SinkGuard<'a> {
    channel: &'a ResponseChannel,
    sink: Option<Sink>,
    /// True until the call of the sink has returned.
    panicked: bool,
}

impl Drop for SinkGuard<'_> {
    fn drop(&mut self) {
        if self.sink.is_some() {
            let mut state = self.channel.state.lock();
            state.sink = self.sink.take();
            if self.panicked {
                self.channel.delivering.store(false, Ordering::Relaxed);
            }
        }
    }
}

fn already_finished() -> Error {
    Error::internal("the final response has already been sent")
}
