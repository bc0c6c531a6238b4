//! The two ends of a ring. The model test compiles this file a second time, with atomics of its own:
//! what these come from is named by the parent module.

use super::{
    HEAD, Kind, MAX_RECORD, MappedRing, Ordering, RingCorruption, SLEEPING, TAIL, WORDS, fence,
};

/// Words of a record with `len` bytes.
pub(super) fn record_words(len: usize) -> u64 {
    1 + len.div_ceil(8) as u64
}

/// The sending end. Used by one thread at a time.
pub struct RingProducer {
    pub(super) ring: MappedRing,
    tail: u64,
}

impl RingProducer {
    pub(super) fn new(ring: MappedRing) -> Self {
        Self { ring, tail: 0 }
    }

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
    pub(super) ring: MappedRing,
    head: u64,
}

impl RingConsumer {
    pub(super) fn new(ring: MappedRing) -> Self {
        Self { ring, head: 0 }
    }

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
