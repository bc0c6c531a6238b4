//! AEGIS-128X2 (RFC 10032) as a message authentication code: the cargo feature `aegis`.

use aegis::aegis128x2::Aegis128X2Mac;

/// Bytes of the longer one of the two codes of AEGIS, which is as cheap as the other one.
const CODE_BYTES: usize = 32;

/// The state after a secret was read. Boxed: it has half a kilobyte.
pub struct AegisCode(Box<Aegis128X2Mac<CODE_BYTES>>);

impl AegisCode {
    /// `None` where the CPU lacks the instructions that the fast code needs. AEGIS is slow there.
    pub fn new_if_fast(secret: [u64; 2]) -> Option<Self> {
        has_aes_instructions().then(|| Self::new(secret))
    }

    pub fn new(secret: [u64; 2]) -> Self {
        let secret = u128::from(secret[0]) << 64 | u128::from(secret[1]);
        Self(Box::new(Aegis128X2Mac::new(&secret.to_le_bytes())))
    }

    /// The code of the concatenated `parts`.
    pub fn code_parts<'a>(&self, parts: impl Iterator<Item = &'a [u8]>) -> [u8; CODE_BYTES] {
        let mut code = self.0.clone();
        parts.for_each(|part| code.update(part));
        code.finalize()
    }
}

fn has_aes_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("avx");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}
