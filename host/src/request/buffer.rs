//! Host memory for tensors: 64-byte aligned blocks that turn into wire bytes without a copy.

use bytes::Bytes;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment of every block: a cache line, and what vectorised kernels like best.
pub const ALIGN: usize = 64;

/// An owned block of bytes, aligned to [`ALIGN`]. Contents start out undefined-but-initialised: zero
/// for small blocks, see [`AlignedBuf::new`].
pub struct AlignedBuf {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: an `AlignedBuf` owns its memory exclusively, like a `Vec<u8>`.
unsafe impl Send for AlignedBuf {}
// SAFETY: shared access only reads.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// A zeroed block of `len` bytes. Zeroing matters: a plugin that writes too little must not leak
    /// what another request left there. Large blocks come zeroed from the kernel at no cost.
    pub fn new(len: usize) -> Self {
        let Some(layout) = layout(len) else {
            return Self { ptr: NonNull::<Aligned>::dangling().cast(), len: 0 };
        };
        // SAFETY: the layout has a non-zero size.
        let ptr = unsafe { std::alloc::alloc_zeroed(layout) };
        let Some(ptr) = NonNull::new(ptr) else { handle_alloc_error(layout) };
        Self { ptr, len }
    }

    /// A copy of `parts`, one after another.
    pub fn copy_of(parts: &[&[u8]]) -> Self {
        let len = parts.iter().map(|p| p.len()).sum();
        let Some(layout) = layout(len) else { return Self::new(0) };
        // SAFETY: the layout has a non-zero size.
        let ptr = unsafe { alloc(layout) };
        let Some(ptr) = NonNull::new(ptr) else { handle_alloc_error(layout) };
        let mut at = 0;
        for part in parts {
            // SAFETY: `at + part.len()` never exceeds `len`, the sum of all parts; a fresh block does not overlap them.
            unsafe {
                std::ptr::copy_nonoverlapping(part.as_ptr(), ptr.as_ptr().add(at), part.len())
            };
            at += part.len();
        }
        Self { ptr, len }
    }

    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Hands the block over as reference-counted bytes, without a copy.
    pub fn into_bytes(self) -> Bytes {
        if self.len == 0 { Bytes::new() } else { Bytes::from_owner(self) }
    }
}

impl AsRef<[u8]> for AlignedBuf {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `ptr` is valid for `len` initialised bytes (dangling and aligned when `len` is 0).
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl AsMut<[u8]> for AlignedBuf {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_ref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if let Some(layout) = layout(self.len) {
            // SAFETY: the block came from the allocator with this very layout.
            unsafe { dealloc(self.ptr.as_ptr(), layout) };
        }
    }
}

/// Gives a dangling pointer the promised alignment.
#[repr(align(64))]
struct Aligned;

fn layout(len: usize) -> Option<Layout> {
    if len == 0 { None } else { Layout::from_size_align(len, ALIGN).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_zeroed_and_handed_over() {
        for len in [0, 1, 64, 100_000] {
            let mut buf = AlignedBuf::new(len);
            assert_eq!(buf.as_mut_ptr() as usize % ALIGN, 0);
            assert_eq!(buf.into_bytes(), vec![0; len]);
        }
        assert_eq!(AlignedBuf::copy_of(&[b"ab", b"", b"c"]).into_bytes(), "abc".as_bytes());
    }
}
