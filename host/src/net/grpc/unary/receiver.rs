//! A message while it arrives: its large fields go into blocks of their own at once, so that the wire's own buffers are
//! free for the next bytes, and stay small and in the caches.

use super::MessageBuf;
use crate::arena::Arena;
use crate::request::buffer::AlignedBuf;
use crate::request::pool;
use bytes::{Buf, Bytes};
use std::sync::Arc;
use trtserver_proto_wire::{PartialVarint, Tag, WireType};

/// From this size on a field gets a block; the others stay where they arrived.
const LARGE: usize = pool::MIN_SIZE;
/// Flag and length in front of a message.
const PREFIX: usize = 5;

/// See the module text. `F` says where the tensors for a model of some name go, if it matters.
pub struct MessageReceiver<'a, F> {
    frames: MessageBuf,
    /// Bytes of all so far, in `frames` or not.
    received: usize,
    /// Where the message ends, once that is known.
    end: usize,
    next: Next,
    arena: &'a F,
}

/// What the next byte is.
enum Next {
    /// Of the prefix, with its length so far.
    Prefix(u64),
    /// Of the number that is a field's key, a field's length, or a field.
    Number(Number, PartialVarint),
    /// Of so many more that are in no large field.
    Small(usize),
    /// The first of a large field of so many.
    Open(usize),
    /// Of a large field, of which so many bytes are there.
    Large(AlignedBuf, usize),
    /// Of something that is not looked at: decoding will say what is wrong with it, if anything.
    Rest,
}

#[derive(Clone, Copy)]
enum Number {
    Key,
    Length,
    Value,
}

const KEY: Next = Next::Number(Number::Key, PartialVarint::new());

impl<'a, F: Fn(&str) -> Option<Arc<Arena>>> MessageReceiver<'a, F> {
    pub fn new(arena: &'a F) -> Self {
        let frames = MessageBuf::default();
        Self { frames, received: 0, end: usize::MAX, next: Next::Prefix(0), arena }
    }

    /// Bytes so far.
    pub fn received(&self) -> usize {
        self.received
    }

    /// Takes the next bytes.
    pub fn push(&mut self, chunk: Bytes) {
        // What lies between the two goes on as it is.
        let (mut from, mut at) = (0, 0);
        while at < chunk.len() {
            let left = chunk.len() - at;
            match &mut self.next {
                Next::Rest => break,
                Next::Small(missing) => {
                    let step = left.min(*missing);
                    *missing -= step;
                    at += step;
                    if *missing == 0 {
                        self.next = KEY;
                    }
                }
                Next::Large(block, filled) => {
                    let step = left.min(block.len() - *filled);
                    block.as_mut()[*filled..*filled + step].copy_from_slice(&chunk[at..at + step]);
                    *filled += step;
                    at += step;
                    from = at;
                    if *filled == block.len() {
                        self.close();
                    }
                }
                Next::Prefix(_) | Next::Number(..) => {
                    at += 1;
                    self.step(chunk[at - 1], self.received + at);
                }
                Next::Open(length) => {
                    let length = *length;
                    self.frames.push(chunk.slice(from..at));
                    from = at;
                    self.next =
                        self.block(length).map_or(Next::Rest, |block| Next::Large(block, 0));
                }
            }
        }
        self.received += chunk.len();
        self.frames.push(chunk.slice(from..));
    }

    /// All that arrived, also of a message that was cut short.
    pub fn finish(mut self) -> MessageBuf {
        self.close();
        self.frames.seal();
        self.frames
    }

    fn close(&mut self) {
        if let Next::Large(block, filled) = std::mem::replace(&mut self.next, KEY) {
            self.frames.push(block.into_bytes().slice(..filled));
        }
    }

    /// Where a large field goes. Room that nobody fills costs addresses only.
    fn block(&self, length: usize) -> Option<AlignedBuf> {
        let mut seen = self.frames.clone();
        seen.seal();
        seen.advance(PREFIX.min(seen.remaining()));
        let arena = seen.first_text().and_then(self.arena);
        AlignedBuf::try_for_input(arena.as_ref(), length)
    }

    /// What follows from a byte of the prefix or a number; it ends at `at`.
    fn step(&mut self, byte: u8, at: usize) {
        self.next = match self.next {
            Next::Prefix(_) if at == 1 && byte != 0 => Next::Rest,
            Next::Prefix(length) => {
                let length = length << 8 | u64::from(byte);
                match at {
                    ..PREFIX => Next::Prefix(length),
                    // Nothing in it is large.
                    _ if length < LARGE as u64 => Next::Rest,
                    _ => {
                        self.end = PREFIX + length as usize;
                        KEY
                    }
                }
            }
            Next::Number(what, mut varint) => match varint.push(byte) {
                Ok(Some(value)) => self.field(what, value, at),
                Ok(None) => Next::Number(what, varint),
                Err(_) => Next::Rest,
            },
            _ => Next::Rest,
        };
    }

    /// What follows a whole number.
    fn field(&self, what: Number, value: u64, at: usize) -> Next {
        let left = self.end.saturating_sub(at);
        match what {
            Number::Value => KEY,
            Number::Key => match Tag::from_varint(value).map(|tag| tag.wire_type) {
                Ok(WireType::Varint) => Next::Number(Number::Value, PartialVarint::new()),
                Ok(WireType::Bytes) => Next::Number(Number::Length, PartialVarint::new()),
                Ok(WireType::Fixed32) => Next::Small(4),
                Ok(WireType::Fixed64) => Next::Small(8),
                Ok(WireType::StartGroup | WireType::EndGroup) | Err(_) => Next::Rest,
            },
            Number::Length => match usize::try_from(value) {
                Ok(0) => KEY,
                Ok(length) if length > left => Next::Rest,
                Ok(length) if length < LARGE => Next::Small(length),
                Ok(length) => Next::Open(length),
                Err(_) => Next::Rest,
            },
        }
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
