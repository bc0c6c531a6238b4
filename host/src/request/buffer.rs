//! Host memory for tensors: 64-byte aligned blocks that turn into wire bytes without a copy.

use bytes::Bytes;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment of every block: a cache line, and what vectorised kernels like best.
pub const ALIGN: usize = 64;

/// An owned block of bytes, aligned to [`ALIGN`].
pub struct AlignedBuf {
    ptr: NonNull<u8>,
    len: usize,
    /// What the allocator gave, with room to align in; none when `len` is 0.
    block: Option<(NonNull<u8>, Layout)>,
}

// SAFETY: an `AlignedBuf` owns its memory exclusively, like a `Vec<u8>`.
unsafe impl Send for AlignedBuf {}
// SAFETY: shared access only reads.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// A zeroed block of `len` bytes. Zeroing matters: a plugin that writes too little must not leak
    /// what another request left there.
    pub fn new(len: usize) -> Self {
        // SAFETY: `of` passes a layout of non-zero size.
        Self::of(len, |layout| unsafe { alloc_zeroed(layout) })
    }

    /// As [`AlignedBuf::new`]; `None` when there is not so much memory.
    pub fn try_new(len: usize) -> Option<Self> {
        // SAFETY: `try_of` passes a layout of non-zero size.
        Self::try_of(len, |layout| unsafe { alloc_zeroed(layout) })
    }

    /// A copy of `parts`, one after another.
    pub fn copy_of(parts: &[&[u8]]) -> Self {
        // SAFETY: `of` passes a layout of non-zero size; every byte is written below.
        let block = Self::of(parts.iter().map(|p| p.len()).sum(), |l| unsafe { alloc(l) });
        let mut at = 0;
        for part in parts {
            // SAFETY: `at + part.len()` never exceeds `len`, the sum of all parts; a fresh block does not overlap them.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    part.as_ptr(),
                    block.ptr.as_ptr().add(at),
                    part.len(),
                );
            }
            at += part.len();
        }
        block
    }

    fn of(len: usize, allocate: impl FnOnce(Layout) -> *mut u8) -> Self {
        // What checks have let pass and memory has no room for.
        Self::try_of(len, allocate).unwrap_or_else(|| handle_alloc_error(Layout::new::<Aligned>()))
    }

    /// The allocator is asked for room to align in, not for an aligned block: only so do large zeroed
    /// blocks come from the kernel as they are, where an aligned one is written over byte by byte.
    fn try_of(len: usize, allocate: impl FnOnce(Layout) -> *mut u8) -> Option<Self> {
        if len == 0 {
            return Some(Self { ptr: NonNull::<Aligned>::dangling().cast(), len, block: None });
        }
        let layout = Layout::array::<u8>(len.checked_add(ALIGN - 1)?).ok()?;
        let base = NonNull::new(allocate(layout))?;
        let skip = base.as_ptr().align_offset(ALIGN);
        // SAFETY: at most `ALIGN - 1` bytes on, inside the block.
        let ptr = unsafe { base.add(skip) };
        Some(Self { ptr, len, block: Some((base, layout)) })
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
        if let Some((base, layout)) = self.block {
            // SAFETY: the block came from the allocator with this very layout.
            unsafe { dealloc(base.as_ptr(), layout) };
        }
    }
}

/// Gives a dangling pointer the promised alignment.
#[repr(align(64))]
struct Aligned;

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
        assert!(AlignedBuf::try_new(usize::MAX).is_none());
        assert!(AlignedBuf::try_new(isize::MAX as usize - 100).is_none());
        assert_eq!(AlignedBuf::copy_of(&[b"ab", b"", b"c"]).into_bytes(), "abc".as_bytes());
    }
}
