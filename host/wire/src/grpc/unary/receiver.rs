//! Receives a message: its large fields are copied into blocks of their own while they arrive, so
//! that hyper's buffers are free for the next bytes, and stay small and in the CPU caches.

use super::sizes::PREFIX;
use super::{MessageBuf, RequestedModel};
use bytes::{Buf, Bytes};
use trtserver_base::budget;
use trtserver_base::budget::{MemoryReservation, ReservationGrowth, SMALL, request_memory};
use trtserver_base::ledger::{LedgerHolder, MemoryTag};
use trtserver_models::InputMemory;
use trtserver_proto_wire::{PartialVarint, Tag, WireType};
use trtserver_request::buffer::{AlignedBuf, POOLED_INPUT};
use trtserver_request::pool;

/// Fields of at least this size get a block; the others stay in the buffers in which they arrived.
pub const LARGE: usize = pool::MIN_SIZE;
/// A message is drawn from the memory budget in steps of at least this size.
const PAID_STEP: usize = 256 << 10;
/// Parts of a frame beside a block are copied up to this size, so that they do not keep the frame.
const MAX_COPIED: usize = 4 << 10;
/// Fields that are looked at. A message with more stays in the buffers in which it arrived: reading
/// millions of empty fields byte by byte would keep the network thread busy for milliseconds.
const MAX_FIELDS: u32 = 4096;

/// Receives one message and copies its large fields into blocks of their own. `F` returns the
/// memory for a model's inputs.
pub struct MessageReceiver<'a, F> {
    frames: MessageBuf,
    /// Bytes received so far, in `frames` or not.
    received: usize,
    /// Offset of the message's end, once the prefix is read.
    end: usize,
    next: NextByte,
    /// Fields looked at so far.
    fields: u32,
    memory_of: &'a F,
    /// Memory for the inputs of the message's model, once the model's name has arrived.
    memory: Option<InputMemory>,
    /// The first bytes that are paid for have arrived; they contain the name, if it is not too
    /// long.
    looked_up: bool,
    /// Pays for what was received and is not in a block yet.
    reservation: MemoryReservation,
    /// Bytes drawn so far, for blocks too.
    paid: usize,
}

/// What the next byte belongs to.
enum NextByte {
    /// The prefix, with the length read so far.
    Prefix(u64),
    /// The varint of a key, a length or a value.
    Number(VarintRole, PartialVarint),
    /// This many bytes that are in no large field.
    Small(usize),
    /// The first byte of a large field of this length.
    Open(usize),
    /// A large field, of which this many bytes have arrived.
    Large(AlignedBuf, usize),
    /// Anything that is not interpreted here: decoding reports what is wrong with it, if anything.
    Rest,
}

#[derive(Clone, Copy)]
enum VarintRole {
    Key,
    Length,
    Value,
}

const KEY: NextByte = NextByte::Number(VarintRole::Key, PartialVarint::new());

impl<'a, F: Fn(RequestedModel<'_>) -> Option<InputMemory>> MessageReceiver<'a, F> {
    pub fn new(memory_of: &'a F) -> Self {
        let frames = MessageBuf::default();
        let reservation = request_memory().empty(LedgerHolder::RequestBody);
        Self {
            frames,
            received: 0,
            end: usize::MAX,
            next: NextByte::Prefix(0),
            fields: 0,
            memory_of,
            memory: None,
            looked_up: false,
            reservation,
            paid: 0,
        }
    }

    /// Draws the next `more` bytes from the memory budget; bytes of small messages are not drawn. A
    /// message must be refused if its bytes are not granted.
    pub fn pay(&mut self, more: usize) -> ReservationGrowth<'_> {
        let needed = self.received + more;
        if needed <= SMALL.max(self.paid) {
            return ReservationGrowth::done();
        }
        let left = self.end.saturating_sub(self.paid);
        let step = (needed - self.paid).max(left.min(PAID_STEP));
        self.paid += step;
        self.reservation.grow(step)
    }

    /// Bytes so far.
    pub fn received(&self) -> usize {
        self.received
    }

    /// Takes the next bytes.
    pub fn push(&mut self, chunk: Bytes) {
        if self.paid > 0 && !std::mem::replace(&mut self.looked_up, true) {
            self.find_model(&chunk);
        }
        // The bytes between `from` and `at` are kept zero-copy.
        let (mut from, mut at) = (0, 0);
        while at < chunk.len() {
            let left = chunk.len() - at;
            match &mut self.next {
                NextByte::Rest => break,
                NextByte::Small(missing) => {
                    let step = left.min(*missing);
                    *missing -= step;
                    at += step;
                    if *missing == 0 {
                        self.next = KEY;
                    }
                }
                NextByte::Large(block, filled) => {
                    let step = left.min(block.len() - *filled);
                    block.as_mut()[*filled..*filled + step].copy_from_slice(&chunk[at..at + step]);
                    *filled += step;
                    at += step;
                    from = at;
                    if *filled == block.len() {
                        self.close();
                    }
                }
                NextByte::Prefix(_) | NextByte::Number(..) => {
                    at += 1;
                    self.step(chunk[at - 1], self.received + at);
                }
                NextByte::Open(length) => {
                    let length = *length;
                    self.keep(&chunk, from, at);
                    from = at;
                    self.next = self
                        .block(length)
                        .map_or(NextByte::Rest, |block| NextByte::Large(block, 0));
                }
            }
        }
        self.keep(&chunk, from, at.max(chunk.len()));
        self.received += chunk.len();
    }

    /// Appends a part of a chunk that is in no block.
    fn keep(&mut self, chunk: &Bytes, from: usize, to: usize) {
        let part = to - from;
        if part == 0 {
            return;
        }
        // A slice would keep the whole frame.
        let copied = part <= MAX_COPIED && chunk.len() > MAX_COPIED;
        let kept = if copied {
            Bytes::copy_from_slice(&chunk[from..to])
        } else {
            budget::charge_bytes(chunk.slice(from..to), self.reservation.split(part))
        };
        self.frames.push(kept);
    }

    /// All that arrived, also of a truncated message.
    pub fn finish(mut self) -> MessageBuf {
        self.close();
        self.frames.seal();
        self.frames.set_tag(self.tag());
        self.frames
    }

    fn close(&mut self) {
        if let NextByte::Large(mut block, filled) = std::mem::replace(&mut self.next, KEY) {
            if let Some(paid) = block.reservation() {
                paid.merge(self.reservation.split(filled.saturating_sub(paid.bytes())));
            }
            self.frames.push(block.into_bytes().slice(..filled));
        }
    }

    /// The block for a large field; `None` if it does not fit into memory, or not yet. Pages that
    /// are never written cost address space only; where that is limited, the block is paid for now.
    fn block(&mut self, length: usize) -> Option<AlignedBuf> {
        self.find_model(&Bytes::new());
        let arena = self.memory.as_ref().and_then(|memory| memory.arena.as_ref());
        let pool = self.memory.as_ref().and_then(|memory| memory.pool.as_deref());
        let pool = pool.filter(|_| length >= POOLED_INPUT);
        if let Some(block) = pool.and_then(|pool| AlignedBuf::try_in_pool(pool, length, self.tag()))
        {
            return Some(block);
        }
        if arena.is_none() && request_memory().counts_address_space() {
            return AlignedBuf::unwritten(length, self.tag()).ok();
        }
        AlignedBuf::try_for_input(arena, length, self.tag())
    }

    /// Looks up the message's model if its name has arrived, with `chunk` at the latest.
    fn find_model(&mut self, chunk: &Bytes) {
        if self.memory.is_some() {
            return;
        }
        let mut seen = self.frames.clone();
        seen.push(chunk.clone());
        seen.seal();
        seen.advance(PREFIX.min(seen.remaining()));
        self.memory = seen.model().and_then(self.memory_of);
        self.reservation.set_tag(self.tag());
    }

    /// What the message is entered under in the ledger.
    fn tag(&self) -> MemoryTag {
        let model = self.memory.as_ref().map(|memory| memory.owner.tag(LedgerHolder::Input));
        model.unwrap_or_default()
    }

    /// Takes a byte of the prefix or of a varint; `at` is the offset behind it.
    fn step(&mut self, byte: u8, at: usize) {
        self.next = match self.next {
            NextByte::Prefix(_) if at == 1 && byte != 0 => NextByte::Rest,
            NextByte::Prefix(length) => {
                let length = length << 8 | u64::from(byte);
                match at {
                    ..PREFIX => NextByte::Prefix(length),
                    // No field can be large.
                    _ if length < LARGE as u64 => NextByte::Rest,
                    _ => {
                        self.end = PREFIX + length as usize;
                        KEY
                    }
                }
            }
            NextByte::Number(what, mut varint) => match varint.push(byte) {
                Ok(Some(value)) => self.field(what, value, at),
                Ok(None) => NextByte::Number(what, varint),
                Err(_) => NextByte::Rest,
            },
            _ => NextByte::Rest,
        };
    }

    /// What follows a complete varint.
    fn field(&mut self, what: VarintRole, value: u64, at: usize) -> NextByte {
        let left = self.end.saturating_sub(at);
        match what {
            VarintRole::Value => KEY,
            VarintRole::Key => {
                self.fields += 1;
                match Tag::from_varint(value).map(|tag| tag.wire_type) {
                    _ if self.fields > MAX_FIELDS => NextByte::Rest,
                    Ok(WireType::Varint) => {
                        NextByte::Number(VarintRole::Value, PartialVarint::new())
                    }
                    Ok(WireType::Bytes) => {
                        NextByte::Number(VarintRole::Length, PartialVarint::new())
                    }
                    Ok(WireType::Fixed32) => NextByte::Small(4),
                    Ok(WireType::Fixed64) => NextByte::Small(8),
                    Ok(WireType::StartGroup | WireType::EndGroup) | Err(_) => NextByte::Rest,
                }
            }
            VarintRole::Length => match usize::try_from(value) {
                Ok(0) => KEY,
                Ok(length) if length > left => NextByte::Rest,
                Ok(length) if length < LARGE => NextByte::Small(length),
                Ok(length) => NextByte::Open(length),
                Err(_) => NextByte::Rest,
            },
        }
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
