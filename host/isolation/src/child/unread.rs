//! Unread responses of a stream, as the process of an isolated model sees them: blocks of its arena
//! that the host still refers to.

use crate::messages::{OutputMessage, RequestStream};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use trtserver_base::arena::Arena;
use trtserver_base::error::{Code, Error, Result};
use trtserver_request::CancelToken;
use trtserver_request::unread::{
    RESPONSE_OVERHEAD, StreamLimit, UnreadAccount, UnreadBacklog, UnreadResponse,
};

/// How often a waiting backend looks for references that the host has released, of which it is not
/// notified.
const LOOK: Duration = Duration::from_millis(2);

/// The streams whose requests this process executes.
pub struct Streams {
    by_number: Mutex<HashMap<u64, Weak<SharedStream>>>,
    /// The host sends responses in the order of the requests, and holds those of later requests
    /// back.
    in_order: bool,
    next: AtomicU64,
}

impl Streams {
    /// `in_order`: the model preserves the order of its responses.
    pub fn new(in_order: bool) -> Self {
        Self { by_number: Mutex::default(), in_order, next: AtomicU64::new(1) }
    }

    /// A request of a stream.
    pub fn enter(&self, message: &RequestStream, arena: &Arc<Arena>) -> Arc<StreamRequest> {
        let request = self.next.fetch_add(1, Ordering::Relaxed);
        Arc::new(StreamRequest { stream: self.stream(message, arena), request })
    }

    fn stream(&self, message: &RequestStream, arena: &Arc<Arena>) -> Arc<SharedStream> {
        let mut streams = self.by_number.lock();
        if let Some(stream) = streams.get(&message.number).and_then(Weak::upgrade) {
            return stream;
        }
        streams.retain(|_, stream| stream.strong_count() > 0);
        let stream = Arc::new(SharedStream {
            number: message.number,
            limit: message.limit as usize,
            timeout: Duration::from_millis(message.timeout_ms),
            in_order: self.in_order,
            arena: Arc::clone(arena),
            state: Mutex::default(),
        });
        streams.insert(message.number, Arc::downgrade(&stream));
        stream
    }
}

/// A stream, see the module text.
struct SharedStream {
    number: u64,
    limit: usize,
    timeout: Duration,
    in_order: bool,
    arena: Arc<Arena>,
    state: Mutex<UnreadState>,
}

/// One request of a stream.
pub struct StreamRequest {
    stream: Arc<SharedStream>,
    /// Number of the request among all requests of the process.
    request: u64,
}

#[derive(Default)]
struct UnreadState {
    /// Unread responses that were admitted and are not shared with the host yet.
    admitted: UnreadCount,
    /// Unread responses in blocks that are shared with the host.
    shared: UnreadCount,
    /// By slot, with the request. A block that the host released and the backend used again is
    /// counted once.
    blocks: HashMap<u32, (UnreadCount, u64)>,
    /// How often blocks were found that the host had released.
    released: u64,
}

#[derive(Clone, Copy, Default)]
struct UnreadCount {
    bytes: usize,
    responses: usize,
}

impl UnreadState {
    fn bytes(&self) -> usize {
        self.admitted.bytes + self.shared.bytes
    }

    /// Removes the blocks that the host has released.
    fn sweep(&mut self, arena: &Arena) {
        let before = self.blocks.len();
        let shared = &mut self.shared;
        self.blocks.retain(|slot, (block, _)| {
            let kept = arena.is_shared(*slot);
            if !kept {
                shared.bytes -= block.bytes;
                shared.responses -= block.responses;
            }
            kept
        });
        self.released += u64::from(self.blocks.len() < before);
    }

    fn add(&mut self, slot: u32, block: UnreadCount, request: u64) {
        let (before, _) = self.blocks.insert(slot, (block, request)).unwrap_or_default();
        self.shared.bytes = self.shared.bytes + block.bytes - before.bytes;
        self.shared.responses = self.shared.responses + block.responses - before.responses;
    }

    fn has_unread(&self, request: u64) -> bool {
        self.blocks.values().any(|(_, of)| *of == request)
    }
}

impl StreamRequest {
    /// The outputs of an admitted response are shared with the host.
    pub fn share(&self, outputs: &[OutputMessage]) {
        let mut state = self.stream.state.lock();
        let in_arena = outputs.iter().filter(|output| !output.in_destination);
        for (at, output) in in_arena.enumerate() {
            let (overhead, responses) = if at == 0 { (RESPONSE_OVERHEAD, 1) } else { (0, 0) };
            let block = UnreadCount { bytes: output.bytes as usize + overhead, responses };
            state.add(output.slot, block, self.request);
        }
    }

    fn full(&self, why: &str) -> Error {
        Error::new(
            Code::ResourceExhausted,
            format!(
                "{why}: the limit of {} unread bytes (--max-unread-per-stream) is reached",
                self.stream.limit
            ),
        )
    }
}

impl StreamLimit for StreamRequest {
    fn admit(
        self: Arc<Self>,
        bytes: usize,
        wait: bool,
        cancel: &CancelToken,
    ) -> Result<UnreadResponse> {
        let stream = &self.stream;
        let (mut since, mut released) = (Instant::now(), None);
        loop {
            if cancel.is_cancelled() {
                return Err(Error::new(Code::Cancelled, "request was cancelled"));
            }
            let mut state = stream.state.lock();
            if state.bytes() >= stream.limit {
                state.sweep(&stream.arena);
            }
            // Where order is preserved, the unread responses may be those of later requests, which
            // the client gets after this one's: the request whose turn it is must not wait for
            // them.
            let proceeds = stream.in_order && !state.has_unread(self.request);
            if state.bytes() < stream.limit || proceeds {
                state.admitted.bytes += bytes;
                state.admitted.responses += 1;
                drop(state);
                return Ok(UnreadResponse::new(Arc::clone(stream) as _, bytes));
            }
            if released.replace(state.released) != Some(state.released) {
                since = Instant::now();
            }
            drop(state);
            if !wait {
                return Err(self.full("the client has not read earlier responses"));
            }
            if since.elapsed() >= stream.timeout {
                let order = if stream.in_order { ", or waits for an earlier request" } else { "" };
                let why = format!("the client has read nothing for {:?}{order}", stream.timeout);
                return Err(self.full(&why));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn backlog(&self) -> UnreadBacklog {
        let mut state = self.stream.state.lock();
        state.sweep(&self.stream.arena);
        UnreadBacklog {
            bytes: state.bytes() as u64,
            responses: (state.admitted.responses + state.shared.responses) as u64,
            limit: self.stream.limit as u64,
        }
    }

    fn stream(&self) -> u64 {
        self.stream.number
    }

    fn timeout(&self) -> Duration {
        self.stream.timeout
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
