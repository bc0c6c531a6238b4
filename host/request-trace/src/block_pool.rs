//! Memory for traces: blocks of finished traces are used for the next ones.

use crate::ids::TraceIds;
use crate::request_trace::RequestTrace;
use parking_lot::Mutex;

/// Most blocks that wait for a trace, about 0.8 KB each.
const MAX_WAITING: usize = 1024;

/// Blocks that wait for the next traces. Boxed, because a trace goes from thread to thread as a
/// pointer.
pub struct BlockPool {
    #[allow(clippy::vec_box, reason = "blocks are passed on without a copy")]
    waiting: Mutex<Vec<Box<RequestTrace>>>,
    ids: TraceIds,
}

impl BlockPool {
    /// A pool of the server with these ids.
    pub fn new(ids: TraceIds) -> Self {
        Self { waiting: Mutex::default(), ids }
    }

    /// An empty block.
    pub fn take(&self) -> Box<RequestTrace> {
        let used = self.waiting.lock().pop();
        used.unwrap_or_else(|| RequestTrace::block(&self.ids))
    }

    pub fn give_back(&self, block: Box<RequestTrace>) {
        self.keep(clear_block(block).into_iter());
    }

    /// Gives back [cleared](clear_block) blocks.
    #[allow(clippy::vec_box, reason = "blocks are passed on without a copy")]
    pub fn give_back_all(&self, cleared: &mut Vec<Box<RequestTrace>>) {
        self.keep(cleared.drain(..));
    }

    /// Keeps as many as there is room for.
    fn keep(&self, cleared: impl Iterator<Item = Box<RequestTrace>>) {
        let mut waiting = self.waiting.lock();
        let room = MAX_WAITING - waiting.len();
        waiting.extend(cleared.take(room));
    }

    #[cfg(test)]
    pub fn waiting_count(&self) -> usize {
        self.waiting.lock().len()
    }
}

/// Empties a block. `None`: it has grown, and is given back to the allocator.
pub fn clear_block(mut block: Box<RequestTrace>) -> Option<Box<RequestTrace>> {
    block.clear().then_some(block)
}
