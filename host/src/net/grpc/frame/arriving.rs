//! A message while it arrives: its large fields go into blocks of their own at once, so that the wire's own buffers are
//! free for the next bytes, and stay small and in the caches.

use super::FrameBuf;
use crate::arena::Arena;
use crate::request::buffer::AlignedBuf;
use crate::request::pool;
use bytes::{Buf, Bytes};
use prost::encoding::WireType;
use std::sync::Arc;

/// From this size on a field gets a block; the others stay where they arrived.
const LARGE: usize = pool::LEAST;
/// Flag and length in front of a message.
const PREFIX: usize = 5;

/// See the module text. `F` says where the tensors for a model of some name go, if it matters.
pub struct Arriving<'a, F> {
    frames: FrameBuf,
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
    Number(Number, Varint),
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

#[derive(Clone, Copy, Default)]
struct Varint {
    value: u64,
    bits: u32,
}

const KEY: Next = Next::Number(Number::Key, Varint { value: 0, bits: 0 });

impl<'a, F: Fn(&str) -> Option<Arc<Arena>>> Arriving<'a, F> {
    pub fn new(arena: &'a F) -> Self {
        let frames = FrameBuf::default();
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
    pub fn finish(mut self) -> FrameBuf {
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
            Next::Number(what, Varint { value, bits }) if bits < 64 => {
                let value = value | u64::from(byte & 0x7f) << bits;
                match byte & 0x80 {
                    0 => self.field(what, value, at),
                    _ => Next::Number(what, Varint { value, bits: bits + 7 }),
                }
            }
            _ => Next::Rest,
        };
    }

    /// What follows a whole number.
    fn field(&self, what: Number, value: u64, at: usize) -> Next {
        let left = self.end.saturating_sub(at);
        match what {
            Number::Value => KEY,
            Number::Key => match WireType::try_from(value & 7) {
                Ok(WireType::Varint) => Next::Number(Number::Value, Varint::default()),
                Ok(WireType::LengthDelimited) => Next::Number(Number::Length, Varint::default()),
                Ok(WireType::ThirtyTwoBit) => Next::Small(4),
                Ok(WireType::SixtyFourBit) => Next::Small(8),
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
mod tests {
    use super::*;
    use prost::Message;
    use trtserver_proto::v2::{ModelInferRequest, model_infer_request::InferInputTensor};

    fn message(payloads: &[usize]) -> Vec<u8> {
        let input = InferInputTensor { name: "I".into(), shape: vec![-1, 5], ..Default::default() };
        let payload = |n: &usize| Bytes::from((0..*n).map(|b| b as u8).collect::<Vec<_>>());
        let message = ModelInferRequest {
            model_name: "m".into(),
            inputs: vec![input; payloads.len()],
            raw_input_contents: payloads.iter().map(payload).collect(),
            ..Default::default()
        };
        let message = message.encode_to_vec();
        [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat()
    }

    fn arrive(wire: &[u8], step: usize, arena: Option<&Arc<Arena>>) -> FrameBuf {
        let arena = |model: &str| arena.filter(|_| model == "m").cloned();
        let mut arriving = Arriving::new(&arena);
        wire.chunks(step).for_each(|chunk| arriving.push(Bytes::copy_from_slice(chunk)));
        assert_eq!(arriving.received(), wire.len());
        arriving.finish()
    }

    #[test]
    fn large_fields_lie_in_blocks_of_their_own() {
        let wire = message(&[LARGE, 3, LARGE - 1, 3 * LARGE + 1]);
        let arena = Arena::new("test", 4 << 20).unwrap();
        for step in [1, 7, 1000, LARGE, wire.len()] {
            for arena in [None, Some(&arena)] {
                let mut frames = arrive(&wire, step, arena);
                frames.advance(PREFIX);
                let got = ModelInferRequest::decode(frames.clone()).unwrap();
                assert_eq!(got.encode_to_vec(), wire[PREFIX..], "chunks of {step}");
                for raw in got.raw_input_contents.iter().filter(|raw| raw.len() >= LARGE) {
                    assert_eq!(raw.as_ptr() as usize % 64, 0);
                    // Names are looked for in the first piece only.
                    let shared = arena.is_some_and(|a| a.offset_of(raw).is_some());
                    assert_eq!(shared, arena.is_some() && step > 10);
                    // Not copied a second time.
                    let again = ModelInferRequest::decode(frames.clone()).unwrap();
                    assert!(again.raw_input_contents.iter().any(|r| r.as_ptr() == raw.as_ptr()));
                }
            }
        }
    }

    #[test]
    fn nothing_is_lost_of_what_is_not_understood() {
        let whole = message(&[2 * LARGE]);
        let cut = whole[..whole.len() - 9].to_vec();
        let mut compressed = whole.clone();
        compressed[0] = 1;
        // Numbers that never end, groups, a field longer than its message, and numbers of all lengths.
        let with = |bytes: &[u8]| [&whole[..PREFIX], bytes, &whole[PREFIX..]].concat();
        let endless = with(&[0xff; 20]);
        let group = with(&[0x0b, 0x0c]);
        let beyond = with(&[0x0a, 0xff, 0xff, 0xff, 0x7f]);
        let numbers = with(&[0x08, 0x80, 0x01, 0x0d, 1, 2, 3, 4, 0x09, 1, 2, 3, 4, 5, 6, 7, 8]);
        for wire in [cut, compressed, endless, group, beyond, numbers, whole[..3].to_vec(), vec![]]
        {
            for step in [1, 9, 5000, wire.len().max(1)] {
                let mut frames = arrive(&wire, step, None);
                assert_eq!(frames.copy_to_bytes(wire.len()), wire, "chunks of {step}");
            }
        }
    }
}
