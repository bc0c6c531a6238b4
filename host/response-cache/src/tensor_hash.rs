//! The hash of tensors that are too long to be hashed with the rest of a request.
//!
//! AEGIS-128X2 (RFC 10032) as a message authentication code, where the CPU has instructions for AES:
//! it reads tensors as fast as memory delivers them. Elsewhere AEGIS is slow, and HighwayHash does
//! without it.

use aegis::aegis128x2::Aegis128X2Mac;
use highway::{HighwayHash, HighwayHasher};

/// Bytes of the longer one of the two codes of AEGIS, which is as cheap as the other one.
const CODE_BYTES: usize = 32;

/// Hashes long tensors under a secret.
pub enum TensorHash {
    /// The state after the secret was read.
    Aegis(Box<Aegis128X2Mac<CODE_BYTES>>),
    Highway,
}

impl TensorHash {
    /// The fastest one of this CPU.
    pub fn new(secret: [u64; 2]) -> Self {
        if has_aes_instructions() { Self::aegis(secret) } else { Self::Highway }
    }

    pub fn aegis(secret: [u64; 2]) -> Self {
        let secret = u128::from(secret[0]) << 64 | u128::from(secret[1]);
        Self::Aegis(Box::new(Aegis128X2Mac::new(&secret.to_le_bytes())))
    }

    /// Adds a hash of the tensors to `key`, which knows their number and their lengths already.
    pub fn add<'a>(&self, tensors: impl Iterator<Item = &'a [u8]>, key: &mut HighwayHasher) {
        match self {
            Self::Aegis(keyed) => {
                let mut code = keyed.clone();
                tensors.for_each(|tensor| code.update(tensor));
                key.append(&code.finalize());
            }
            Self::Highway => tensors.for_each(|tensor| key.append(tensor)),
        }
    }
}

/// The CPU has the instructions that the fast code of AEGIS needs. Without them AEGIS works, slowly.
fn has_aes_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("avx");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}
