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
        (
            RingProducer { ring: ring(sends), tail: 0 },
            RingConsumer { ring: ring(receives), head: 0 },
        )
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

/// Words of a record with `len` bytes.
fn record_words(len: usize) -> u64 {
    1 + len.div_ceil(8) as u64
}

/// The sending end. Used by one thread at a time.
pub struct RingProducer {
    ring: MappedRing,
    tail: u64,
}

impl RingProducer {
    /// Appends a record of at most [`MAX_RECORD`] bytes; false if there is not enough space now.
    pub fn push(&mut self, kind: Kind, bytes: &[u8]) -> Result<bool, RingCorruption> {
        debug_assert!(bytes.len() <= MAX_RECORD);
        let used = self.tail.wrapping_sub(self.ring.word(HEAD).load(Ordering::Acquire));
        let free = WORDS.checked_sub(used).ok_or(RingCorruption)?;
        if record_words(bytes.len()) > free {
            return Ok(false);
        }
        let head = u64::from(kind) << 32 | bytes.len() as u64;
        self.ring.data(self.tail).store(head, Ordering::Relaxed);
        let (whole, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let last = (!rest.is_empty()).then_some(&last);
        for (word, at) in whole.iter().chain(last).zip(self.tail.wrapping_add(1)..) {
            self.ring.data(at).store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
        self.tail = self.tail.wrapping_add(record_words(bytes.len()));
        self.ring.word(TAIL).store(self.tail, Ordering::Release);
        Ok(true)
    }

    /// After records were appended: whether the consumer has to be woken. True once for each time
    /// that it sleeps.
    pub fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        let sleeping = self.ring.word(SLEEPING);
        sleeping.load(Ordering::Relaxed) != 0 && sleeping.swap(0, Ordering::Relaxed) != 0
    }

    /// Position behind the last record.
    pub fn position(&self) -> u64 {
        self.tail
    }

    /// Position up to which the consumer has taken records, as far as it can be believed.
    pub fn taken(&self) -> u64 {
        self.ring.word(HEAD).load(Ordering::Acquire)
    }
}

/// The receiving end. Used by one thread at a time.
pub struct RingConsumer {
    ring: MappedRing,
    head: u64,
}

impl RingConsumer {
    /// No record was published that was not taken.
    pub fn is_empty(&self) -> bool {
        self.ring.word(TAIL).load(Ordering::Acquire) == self.head
    }

    /// Kind of the next record, without taking it.
    pub fn peek(&self) -> Result<Option<Kind>, RingCorruption> {
        Ok(self.next()?.map(|(kind, _)| kind))
    }

    /// Takes the next record, whose bytes replace those of `into`.
    pub fn pop(&mut self, into: &mut Vec<u8>) -> Result<Option<Kind>, RingCorruption> {
        let Some((kind, len)) = self.next()? else { return Ok(None) };
        into.clear();
        for at in 1..record_words(len) {
            let word = self.ring.data(self.head.wrapping_add(at)).load(Ordering::Relaxed);
            into.extend_from_slice(&word.to_ne_bytes());
        }
        into.truncate(len);
        self.head = self.head.wrapping_add(record_words(len));
        self.ring.word(HEAD).store(self.head, Ordering::Release);
        Ok(Some(kind))
    }

    /// Kind and length of the next record. The peer may change them between two calls; each call
    /// checks what it read.
    fn next(&self) -> Result<Option<(Kind, usize)>, RingCorruption> {
        let published = self.ring.word(TAIL).load(Ordering::Acquire).wrapping_sub(self.head);
        if published == 0 {
            return Ok(None);
        }
        let head = self.ring.data(self.head).load(Ordering::Relaxed);
        let (kind, len) = ((head >> 32) as Kind, (head as u32) as usize);
        if published > WORDS || len > MAX_RECORD || record_words(len) > published {
            return Err(RingCorruption);
        }
        Ok(Some((kind, len)))
    }

    /// Announces that this side will sleep. False if there is a record: then it must not sleep, and
    /// no wake-up is sent.
    pub fn prepare_sleep(&self) -> bool {
        self.ring.word(SLEEPING).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let sleeps = self.is_empty();
        if !sleeps {
            self.awake();
        }
        sleeps
    }

    /// This side does not sleep: producers need not wake it.
    pub fn awake(&self) {
        self.ring.word(SLEEPING).store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
