//! Memory that becomes an output: the host's, or a plugin's that was donated.

use crate::error::{Error, Result};
use crate::request::buffer::{self, AlignedBuf};
use bytes::Bytes;
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::types::Buf;

/// An output's bytes while the plugin may still write them.
pub enum Memory {
    Ours(AlignedBuf),
    Donated(Bytes),
}

impl Memory {
    /// From here on the memory is only read.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Ours(block) => block.into_bytes(),
            Self::Donated(bytes) => bytes,
        }
    }
}

/// Memory given by a plugin; calls its release exactly once, when the last user is gone.
pub struct Donation {
    release: Release,
    ctx: *mut u8,
    view: *const u8,
    len: usize,
}

// SAFETY: by the interface the release may be called on any thread, and the memory is read-only from then on.
unsafe impl Send for Donation {}
// SAFETY: as above.
unsafe impl Sync for Donation {}

impl Donation {
    pub fn new(release: Release, ctx: *mut u8) -> Self {
        Self { release, ctx, view: std::ptr::null(), len: 0 }
    }

    /// The memory in `parts`, in one piece: without a copy if it is that already and need not lie elsewhere. What was
    /// copied stays in `donation`, to be dropped, which calls the plugin, when no lock is held. The parts were checked
    /// by [`size_of_parts`]. `None` when there is no memory for the copy.
    pub fn bytes(donation: &mut Option<Self>, parts: &[Buf]) -> Option<Bytes> {
        match parts {
            [] => Some(Bytes::new()),
            // Another process would read it later than the plugin could be told to wait.
            [one] if !buffer::uses_arena() => {
                let mut whole = donation.take()?;
                (whole.view, whole.len) = (one.ptr, one.bytes as usize);
                Some(Bytes::from_owner(whole))
            }
            several => {
                // SAFETY: each part is readable memory until the release.
                let slices: Vec<&[u8]> = several
                    .iter()
                    .filter(|p| p.bytes > 0)
                    .map(|p| unsafe {
                        std::slice::from_raw_parts(p.ptr.cast_const(), p.bytes as usize)
                    })
                    .collect();
                Some(AlignedBuf::try_copy_of(&slices)?.into_bytes())
            }
        }
    }
}

impl AsRef<[u8]> for Donation {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the plugin promised the memory until its release.
        unsafe { std::slice::from_raw_parts(self.view, self.len) }
    }
}

impl Drop for Donation {
    fn drop(&mut self) {
        if let Some(release) = self.release.func {
            // SAFETY: exactly once, by construction.
            unsafe { release(self.ctx) };
        }
    }
}

/// Bytes of all parts together.
///
/// # Errors
/// More than there can be, or a null pointer with bytes behind it.
pub fn size_of_parts(name: &str, parts: &[Buf]) -> Result<u64> {
    let bytes = parts.iter().try_fold(0u64, |sum, p| sum.checked_add(p.bytes));
    let Some(bytes) = bytes.filter(|n| isize::try_from(*n).is_ok()) else {
        return Err(Error::internal(format!("output '{name}' was donated in an impossible size")));
    };
    if parts.iter().any(|p| p.ptr.is_null() && p.bytes > 0) {
        return Err(Error::internal(format!("output '{name}' was donated as a null pointer")));
    }
    Ok(bytes)
}
