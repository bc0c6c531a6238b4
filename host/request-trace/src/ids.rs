//! Ids of traces and spans: random, never zero, written as lower-case hexadecimal digits.

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// The id of a trace, which its spans share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    pub fn random() -> Self {
        Self((u128::from(random_bits()) << 64 | u128::from(random_bits())).to_be_bytes())
    }

    /// Exactly 32 lower-case hexadecimal digits that are not all 0.
    pub fn from_hex(digits: &[u8]) -> Option<Self> {
        let bytes = parse_hex(digits)?;
        (bytes != [0; 16]).then_some(Self(bytes))
    }
}

impl SpanId {
    pub fn random() -> Self {
        Self(random_bits().to_be_bytes())
    }

    /// Exactly 16 lower-case hexadecimal digits that are not all 0.
    pub fn from_hex(digits: &[u8]) -> Option<Self> {
        let bytes = parse_hex(digits)?;
        (bytes != [0; 8]).then_some(Self(bytes))
    }
}

/// Random bits that are not all 0. Others cannot predict them: the standard library's hash has a
/// random key, and each thread hashes its own numbers with a key of its own.
fn random_bits() -> u64 {
    thread_local! {
        static KEY: RandomState = RandomState::new();
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }
    loop {
        let number = COUNT.replace(COUNT.get().wrapping_add(1));
        let bits = KEY.with(|key| key.hash_one(number));
        if bits != 0 {
            return bits;
        }
    }
}

/// Lower-case digits only, as W3C trace context demands; `None` if there are not `2 * N`.
pub(crate) fn parse_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// The ids of the traces and spans of one server: those of a trace follow from its number, so a
/// trace in progress stores none. Others cannot predict them.
#[derive(Clone, Debug, Default)]
pub struct TraceIds(RandomState);

/// Which span of a traced request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanPart {
    /// The client's request as a whole, around the model.
    Request,
    /// The request to one model.
    Model,
    /// Its execution.
    Compute,
}

impl TraceIds {
    /// The id of the trace whose request has this number.
    pub fn trace_id(&self, number: u64) -> TraceId {
        let half = |part: u8| u128::from(self.0.hash_one((number, part)));
        let bits = half(u8::MAX) << 64 | half(u8::MAX - 1);
        TraceId(bits.max(1).to_be_bytes())
    }

    pub fn span_id(&self, number: u64, part: SpanPart) -> SpanId {
        SpanId(self.0.hash_one((number, part as u8)).max(1).to_be_bytes())
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
