//! Rings of messages in shared memory, one for each direction of a connection between two
//! processes.
//!
//! A ring holds records: a head (length and kind), then the bytes, padded to words. The producer
//! copies a record in, then publishes its position; the consumer copies it out before it looks at
//! it, then publishes its own. Each side keeps its own position in its own memory and checks the
//! position of the peer, so a peer that writes anything at any time can only send wrong messages.
//!
//! **Sleep and wake.** A consumer that is about to sleep sets its flag, then checks the ring once
//! more. A producer publishes a record, then reads the flag, and wakes the consumer if it is set.
//! Both steps are ordered by full fences: of the two, at least one sees what the other has written.
//! How a side sleeps and is woken is up to the user.

mod ends; // producer and consumer

pub use ends::{RingConsumer, RingProducer};

use super::map::{ArenaMap, arena_error};
use super::size_of_sealed;
use crate::error::Result;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::ProtFlags;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of a ring's data; a power of two.
const WORDS: u64 = 4 << 10;
/// The longest record, so that a few always fit.
pub const MAX_RECORD: usize = WORDS as usize * 8 / 4;
/// Positions of the words before the data: each on cache lines of its own.
const TAIL: usize = 0;
const HEAD: usize = 16;
const SLEEPING: usize = 32;
const CLOSED: usize = 48;
const DATA: usize = 64;
/// Words of one direction.
const RING: usize = DATA + WORDS as usize;
const BYTES: usize = 2 * RING * size_of::<AtomicU64>();

/// What a record is; the numbers are the users'.
pub type Kind = u32;

/// The peer has written positions or lengths that no sound peer writes.
#[derive(Debug, PartialEq)]
pub struct RingCorruption;

/// The two rings of a connection, as one of its processes maps them.
pub struct RingPair {
    map: Arc<ArenaMap>,
}

impl RingPair {
    /// Empty rings, and the file to be opened by the other process.
    ///
    /// # Errors
    /// The system refuses the file or the address space.
    pub fn new() -> Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file =
            rustix::fs::memfd_create("rings", flags).map_err(|e| arena_error("created", e))?;
        rustix::fs::ftruncate(&file, BYTES as u64).map_err(|e| arena_error("created", e))?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|e| arena_error("sealed", e))?;
        Ok((Self::open(&file)?, file))
    }

    /// Maps the rings that another process has made.
    ///
    /// # Errors
    /// The file was not made by [`RingPair::new`], or cannot be mapped.
    pub fn open(file: &OwnedFd) -> Result<Self> {
        if size_of_sealed(file)? != BYTES {
            return Err(arena_error("mapped", "not a file of rings"));
        }
        let map = ArenaMap::new(file, BYTES, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Self { map: Arc::new(map) })
    }

    /// Whether the connection is closed.
    pub fn closed(&self) -> ClosedFlag {
        ClosedFlag(MappedRing { map: Arc::clone(&self.map), first: 0 })
    }

    /// The ends of the process that made the rings, or of the other one.
    pub fn ends(self, maker: bool) -> (RingProducer, RingConsumer) {
        let (sends, receives) = if maker { (0, RING) } else { (RING, 0) };
        let ring = |first| MappedRing { map: Arc::clone(&self.map), first };
        (RingProducer::new(ring(sends)), RingConsumer::new(ring(receives)))
    }
}

/// A flag of a connection: neither side sends any more.
pub struct ClosedFlag(MappedRing);

impl ClosedFlag {
    pub fn set(&self) {
        self.0.word(CLOSED).store(1, Ordering::Release);
    }

    pub fn is_set(&self) -> bool {
        self.0.word(CLOSED).load(Ordering::Acquire) != 0
    }
}

struct MappedRing {
    map: Arc<ArenaMap>,
    first: usize,
}

impl MappedRing {
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < RING);
        // SAFETY: inside the mapping, which is two rings long, aligned to a page, and accessed by
        // atomic words only.
        unsafe { self.map.base.cast::<AtomicU64>().add(self.first + at).as_ref() }
    }

    fn data(&self, position: u64) -> &AtomicU64 {
        self.word(DATA + (position % WORDS) as usize)
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "ring_model_tests.rs"]
mod model_tests;
