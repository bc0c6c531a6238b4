//! The key of a request: a keyed hash of everything that the model sees of it.
//!
//! HighwayHash with a random key for each process, and for long tensors a message authentication
//! code under another secret ([`crate::tensor_hash`]): a client that does not know them cannot make
//! a request whose key is that of another client's request. XXH3 with a random secret is not good
//! enough: two long inputs that differ in two words, one stripe apart, are equal under one secret of
//! 2^33, and answers from the cache tell a client which. Each part is preceded by its length, so that
//! two different requests are never the same text. Not part of the key: id, priority and timeouts of
//! the request, and which protocol it came by.

use crate::tensor_hash::TensorHash;
use highway::{HighwayHash, HighwayHasher, Key};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use trtserver_request::{InferRequest, ParameterValue};

/// Tensors up to this size are hashed together with their descriptions.
const SMALL_TENSOR: usize = 128;
/// Tensors up to this size are hashed as the descriptions are: another hash would cost more at its
/// end than it saves.
const MEDIUM_TENSOR: usize = 1024;

/// The secrets of the keys of one process.
pub struct KeySeed {
    secret: [u64; 4],
    tensors: TensorHash,
}

impl KeySeed {
    pub fn random() -> Self {
        // It has 128 bits of the system's randomness.
        let state = RandomState::new();
        let tensors = TensorHash::new([4, 5].map(|i: usize| state.hash_one(i)));
        Self { secret: std::array::from_fn(|i| state.hash_one(i)), tensors }
    }

    #[cfg(test)]
    pub fn fixed(tensors: TensorHash) -> Self {
        Self { secret: [1, 2, 3, 4], tensors }
    }
}

/// The key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestKey(pub u128);

impl Hash for RequestKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Its bits are a hash already.
        state.write_u64(self.0 as u64);
    }
}

/// Hashes a [`RequestKey`] for a table: it is a hash already.
#[derive(Clone, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// For tables by [`RequestKey`].
pub type BuildKeyHasher = BuildHasherDefault<KeyHasher>;

/// Writes what is hashed. It is collected first, because the hash takes longer for many short pieces.
struct KeyText {
    hasher: HighwayHasher,
    waiting: [u8; 384],
    /// How many bytes of `waiting` are used.
    length: usize,
}

impl KeyText {
    fn new(seed: &KeySeed) -> Self {
        Self { hasher: HighwayHasher::new(Key(seed.secret)), waiting: [0; 384], length: 0 }
    }

    #[inline]
    fn raw(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        match self.waiting.get_mut(self.length..end) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.length = end;
            }
            None => self.hasher().append(bytes),
        }
    }

    /// The hash of everything so far.
    fn hasher(&mut self) -> &mut HighwayHasher {
        self.hasher.append(&self.waiting[..std::mem::take(&mut self.length)]);
        &mut self.hasher
    }

    fn number(&mut self, n: u64) {
        self.raw(&n.to_le_bytes());
    }

    /// Two numbers below 2^32.
    fn pair(&mut self, a: usize, b: usize) {
        self.number((a as u64) << 32 | b as u64);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    fn parameter(&mut self, name: &str, value: &ParameterValue) {
        self.bytes(name.as_bytes());
        match value {
            ParameterValue::String(text) => {
                self.number(0);
                self.bytes(text.as_bytes());
            }
            ParameterValue::Int(n) => {
                self.number(1);
                self.number(*n as u64);
            }
            ParameterValue::Bool(b) => {
                self.number(2);
                self.number(u64::from(*b));
            }
            ParameterValue::Double(d) => {
                self.number(3);
                self.number(d.to_bits());
            }
        }
    }
}

/// The key of `request` to the version of a model that was opened as number `version` of the
/// process. `None` if the CPU cannot read one of its inputs.
pub fn request_key(seed: &KeySeed, version: u64, request: &InferRequest) -> Option<RequestKey> {
    let mut text = KeyText::new(seed);
    let context = request.context();
    text.number(version);
    text.pair(context.batch as usize, request.inputs.len());
    for input in &request.inputs {
        let data = input.data.readable()?;
        text.pair(input.index, input.shape.len());
        // Lengths have 56 bits at most.
        text.number((data.len() as u64) << 8 | input.dtype as u64);
        input.shape.iter().for_each(|dim| text.number(*dim as u64));
        if data.len() <= SMALL_TENSOR {
            text.raw(data);
        }
    }
    text.pair(context.outputs.len(), request.parameters.len());
    for output in &context.outputs {
        text.pair(output.index(), output.classes as usize);
    }
    request.parameters.iter().for_each(|(name, value)| text.parameter(name, value));

    let tensors = || request.inputs.iter().filter_map(|input| input.data.readable());
    let medium = tensors().filter(|data| (SMALL_TENSOR + 1..=MEDIUM_TENSOR).contains(&data.len()));
    medium.for_each(|data| text.raw(data));
    let mut long = tensors().filter(|data| data.len() > MEDIUM_TENSOR).peekable();
    if long.peek().is_some() {
        seed.tensors.add(long, text.hasher());
    }
    text.hasher();
    let [low, high] = text.hasher.finalize128();
    Some(RequestKey(u128::from(high) << 64 | u128::from(low)))
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
