//! Counters by owner and holder.

use super::{HOLDERS, LedgerHolder, LedgerOwner, MemoryTag};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Owners whose counters are allocated together.
const CHUNK: usize = 64;
/// Further model versions are entered as the server's.
pub const MAX_OWNERS: usize = CHUNK << 10;

/// Counters of one owner, on cache lines of their own.
#[derive(Default)]
#[repr(align(128))]
struct OwnerCounters([AtomicUsize; HOLDERS.len()]);

type Chunk = Box<[OwnerCounters; CHUNK]>;

/// Byte counters by owner and holder, written without a lock. Memory for the counters of an owner
/// is allocated when it first holds something.
pub struct LedgerTable {
    chunks: [OnceLock<Chunk>; MAX_OWNERS / CHUNK],
}

impl LedgerTable {
    pub const fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; _] }
    }

    /// Enters `bytes`.
    pub fn add(&self, tag: MemoryTag, bytes: usize) {
        self.counter(tag).fetch_add(bytes, Ordering::Relaxed);
    }

    /// Removes `bytes` that were entered.
    pub fn remove(&self, tag: MemoryTag, bytes: usize) {
        self.counter(tag).fetch_sub(bytes, Ordering::Relaxed);
    }

    /// As [`LedgerTable::add`], of a table that this thread alone changes. Wraps around: a block
    /// may be entered in one table and removed in another.
    pub fn add_alone(&self, tag: MemoryTag, bytes: usize) {
        let counter = self.counter(tag);
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
    }

    /// Bytes of an owner and holder.
    pub fn bytes(&self, owner: LedgerOwner, holder: LedgerHolder) -> usize {
        let chunk = self.chunks[owner.0 as usize / CHUNK].get();
        chunk.map_or(0, |chunk| {
            chunk[owner.0 as usize % CHUNK].0[holder as usize].load(Ordering::Relaxed)
        })
    }

    fn counter(&self, tag: MemoryTag) -> &AtomicUsize {
        let owner = tag.owner.0 as usize;
        let chunk = self.chunks[owner / CHUNK]
            .get_or_init(|| Box::new(std::array::from_fn(|_| OwnerCounters::default())));
        &chunk[owner % CHUNK].0[tag.holder as usize]
    }
}

impl Default for LedgerTable {
    fn default() -> Self {
        Self::new()
    }
}
