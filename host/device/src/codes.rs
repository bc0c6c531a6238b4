//! Result codes of the CUDA driver that need a decision.

pub const SUCCESS: u32 = 0;
pub const OUT_OF_MEMORY: u32 = 2;
pub const NO_DEVICE: u32 = 100;
pub const NOT_READY: u32 = 600;
/// The library is newer than the kernel module, or the other way round.
pub const SYSTEM_DRIVER_MISMATCH: u32 = 803;

/// Whether every later call on the same context fails too, until the process ends: an illegal
/// address, a failed launch, an uncorrectable memory error and the like.
pub fn is_sticky(code: u32) -> bool {
    matches!(code, 214 | 219 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721)
}

#[cfg(test)]
#[path = "codes_tests.rs"]
mod tests;
