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
/// trace in progress stores none. Others cannot predict them before they see one of the trace.
#[derive(Clone, Debug)]
pub struct TraceIds {
    hash: RandomState,
    /// Of the half of a trace id that no two numbers share.
    key: u64,
}

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

/// The ids that belong to one number.
#[derive(Clone, Copy, Debug)]
pub struct NumberIds {
    seed: u64,
    low: u64,
}

impl Default for TraceIds {
    fn default() -> Self {
        let hash = RandomState::new();
        let key = hash.hash_one("trace ids");
        Self { hash, key }
    }
}

impl TraceIds {
    /// The id of the trace whose request has this number.
    pub fn trace_id(&self, number: u64) -> TraceId {
        self.ids(number).trace_id()
    }

    pub fn span_id(&self, number: u64, part: SpanPart) -> SpanId {
        self.ids(number).span_id(part)
    }

    /// All ids of a number by one hash, which is the expensive part.
    pub fn ids(&self, number: u64) -> NumberIds {
        NumberIds { seed: self.hash.hash_one(number), low: number ^ self.key }
    }
}

impl NumberIds {
    pub fn trace_id(self) -> TraceId {
        let bits = u128::from(self.seed) << 64 | u128::from(mix(self.low));
        TraceId(bits.max(1).to_be_bytes())
    }

    pub fn span_id(self, part: SpanPart) -> SpanId {
        SpanId(mix(self.seed ^ (part as u64 + 1)).max(1).to_be_bytes())
    }
}

/// Spreads every bit over all of them; different numbers stay different (the last step of
/// SplitMix64).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
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
