//! The hash of tensors that are too long to be hashed with the rest of a request.
//!
//! AEGIS reads tensors as fast as memory delivers them, where the CPU has instructions for AES.
//! Elsewhere it is slow, and HighwayHash does without it.

use crate::aegis_code::AegisCode;
use highway::{HighwayHash, HighwayHasher};

/// Hashes long tensors under a secret.
pub enum TensorHash {
    Aegis(AegisCode),
    Highway,
}

impl TensorHash {
    /// The fastest one of this CPU and this build.
    pub fn new(secret: [u64; 2]) -> Self {
        AegisCode::new_if_fast(secret).map_or(Self::Highway, Self::Aegis)
    }

    /// Adds a hash of the tensors to `key`, which knows their number and their lengths already.
    pub fn add<'a>(&self, tensors: impl Iterator<Item = &'a [u8]>, key: &mut HighwayHasher) {
        match self {
            Self::Aegis(aegis) => key.append(&aegis.code_parts(tensors)),
            Self::Highway => tensors.for_each(|tensor| key.append(tensor)),
        }
    }
}
