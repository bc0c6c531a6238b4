//! Unread responses of a stream, as the process of an isolated model sees them: blocks of its arena that the host still
//! refers to.

use crate::arena::Arena;
use crate::error::{Code, Error, Result};
use crate::plugin::isolated::messages::{Output, RequestStream};
use crate::request::CancelToken;
use crate::request::unread::{Backlog, RESPONSE_OVERHEAD, StreamLimit, Unread, UnreadAccount};
use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How often a waiting backend looks for references that the host has released, of which it is not notified.
const LOOK: Duration = Duration::from_millis(2);

/// The streams whose requests this process executes.
#[derive(Default)]
pub struct Streams(Mutex<HashMap<u64, Weak<SharedStream>>>);

impl Streams {
    /// The stream of a request.
    pub fn get(&self, message: &RequestStream, arena: &Arc<Arena>) -> Arc<SharedStream> {
        let mut streams = self.0.lock();
        if let Some(stream) = streams.get(&message.number).and_then(Weak::upgrade) {
            return stream;
        }
        streams.retain(|_, stream| stream.strong_count() > 0);
        let stream = Arc::new(SharedStream {
            number: message.number,
            limit: message.limit as usize,
            timeout: Duration::from_millis(message.timeout_ms),
            arena: Arc::clone(arena),
            state: Mutex::default(),
        });
        streams.insert(message.number, Arc::downgrade(&stream));
        stream
    }
}

/// See the module text.
pub struct SharedStream {
    number: u64,
    limit: usize,
    timeout: Duration,
    arena: Arc<Arena>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Of responses that were admitted and are not shared with the host yet.
    admitted: Count,
    /// Of the blocks.
    shared: Count,
    /// By slot. A block that the host released and the backend used again is counted once.
    blocks: HashMap<u32, Count>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    bytes: usize,
    responses: usize,
}

impl State {
    fn bytes(&self) -> usize {
        self.admitted.bytes + self.shared.bytes
    }

    /// Removes the blocks that the host has released. Returns whether there were any.
    fn sweep(&mut self, arena: &Arena) -> bool {
        let before = self.blocks.len();
        let shared = &mut self.shared;
        self.blocks.retain(|slot, block| {
            let kept = arena.is_shared(*slot);
            if !kept {
                shared.bytes -= block.bytes;
                shared.responses -= block.responses;
            }
            kept
        });
        self.blocks.len() < before
    }

    fn add(&mut self, slot: u32, block: Count) {
        let before = self.blocks.insert(slot, block).unwrap_or_default();
        self.shared.bytes = self.shared.bytes + block.bytes - before.bytes;
        self.shared.responses = self.shared.responses + block.responses - before.responses;
    }
}

impl SharedStream {
    /// The outputs of an admitted response are shared with the host.
    pub fn share(&self, outputs: &[Output]) {
        let mut state = self.state.lock();
        for (at, output) in outputs.iter().enumerate() {
            let (overhead, responses) = if at == 0 { (RESPONSE_OVERHEAD, 1) } else { (0, 0) };
            state.add(output.slot, Count { bytes: output.bytes as usize + overhead, responses });
        }
    }

    fn full(&self, why: &str) -> Error {
        Error::new(
            Code::ResourceExhausted,
            format!(
                "{why}: the limit of {} unread bytes (--max-unread-per-stream) is reached",
                self.limit
            ),
        )
    }
}

impl StreamLimit for SharedStream {
    fn admit(self: Arc<Self>, bytes: usize, wait: bool, cancel: &CancelToken) -> Result<Unread> {
        let mut since = Instant::now();
        loop {
            if cancel.is_cancelled() {
                return Err(Error::new(Code::Cancelled, "request was cancelled"));
            }
            let mut state = self.state.lock();
            if state.bytes() >= self.limit && state.sweep(&self.arena) {
                since = Instant::now();
            }
            if state.bytes() < self.limit {
                state.admitted.bytes += bytes;
                state.admitted.responses += 1;
                drop(state);
                return Ok(Unread::new(self, bytes));
            }
            drop(state);
            if !wait {
                return Err(self.full("the client has not read earlier responses"));
            }
            if since.elapsed() >= self.timeout {
                let why = format!("the client has read nothing for {:?}", self.timeout);
                return Err(self.full(&why));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn backlog(&self) -> Backlog {
        let mut state = self.state.lock();
        state.sweep(&self.arena);
        Backlog {
            bytes: state.bytes() as u64,
            responses: (state.admitted.responses + state.shared.responses) as u64,
            limit: self.limit as u64,
        }
    }

    fn stream(&self) -> u64 {
        self.number
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }
}

impl UnreadAccount for SharedStream {
    fn release(&self, bytes: usize, _: bool) {
        let mut state = self.state.lock();
        state.admitted.bytes -= bytes;
        state.admitted.responses -= 1;
    }
}

#[cfg(test)]
#[path = "unread_tests.rs"]
mod tests;
