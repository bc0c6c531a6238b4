//! Host memory for tensors: 64-byte aligned blocks that turn into wire bytes without a copy.

use super::pages::Pages;
use super::pool;
use crate::arena::{Arena, Block};
use bytes::Bytes;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// Alignment of every block: a cache line, and what vectorised kernels like best.
pub const ALIGN: usize = 64;

/// An owned block of bytes, aligned to [`ALIGN`].
pub struct AlignedBuf {
    ptr: NonNull<u8>,
    len: usize,
    origin: Origin,
}

/// Where the memory of a block came from.
enum Origin {
    /// Nowhere: there is none.
    Empty,
    /// From the allocator, with room to align in.
    Heap(NonNull<u8>, Layout),
    /// From the pool of large blocks, to which it goes back.
    Pool(Pages),
    /// From memory that another process sees, to which it goes back.
    Arena(#[allow(dead_code, reason = "its drop is what counts")] Block),
}

/// In the process of an isolated backend: where every block lies, so that the host can read it.
static SHARED: OnceLock<Arc<Arena>> = OnceLock::new();

/// All blocks of this process come from `arena` from here on. Once; a process has one arena.
pub fn share_all(arena: Arc<Arena>) {
    let _ = SHARED.set(arena);
}

/// They do.
pub fn is_shared() -> bool {
    SHARED.get().is_some()
}

// SAFETY: an `AlignedBuf` owns its memory exclusively, like a `Vec<u8>`.
unsafe impl Send for AlignedBuf {}
// SAFETY: shared access only reads.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// A zeroed block of `len` bytes. Zeroing matters: a plugin that writes too little must not leak
    /// what another request left there.
    pub fn new(len: usize) -> Self {
        Self::enough(Self::try_new(len))
    }

    /// As [`AlignedBuf::new`]; `None` when there is not so much memory.
    pub fn try_new(len: usize) -> Option<Self> {
        Self::of(SHARED.get(), len, true)
    }

    /// A block of `len` bytes for what is received, in `arena` if there is one and it has room. It is zeroed or holds what
    /// other requests left: only what was written may be shown to anybody.
    pub fn for_input(arena: Option<&Arc<Arena>>, len: usize) -> Self {
        Self::enough(Self::try_for_input(arena, len))
    }

    /// As [`AlignedBuf::for_input`]; `None` when there is not so much memory.
    pub fn try_for_input(arena: Option<&Arc<Arena>>, len: usize) -> Option<Self> {
        let shared = arena.and_then(|arena| Self::of(Some(arena), len, false));
        // Small blocks of the heap are not even initialised.
        shared.or_else(|| Self::of(SHARED.get(), len, len < pool::LEAST))
    }

    /// A copy of `parts`, one after another.
    pub fn copy_of(parts: &[&[u8]]) -> Self {
        Self::copy_to(None, parts)
    }

    /// The same in `arena`, if there is one and it has room.
    pub fn copy_to(arena: Option<&Arc<Arena>>, parts: &[&[u8]]) -> Self {
        let len = parts.iter().map(|p| p.len()).sum();
        let block = arena.and_then(|arena| Self::of(Some(arena), len, false));
        Self::enough(block.or_else(|| Self::of(SHARED.get(), len, false))).filled(parts)
    }

    /// A copy of `parts`, one after another; `None` when there is not so much memory.
    pub fn try_copy_of(parts: &[&[u8]]) -> Option<Self> {
        let len = parts.iter().map(|p| p.len()).sum();
        Some(Self::of(SHARED.get(), len, false)?.filled(parts))
    }

    /// This block with `parts`, which are as long together, written into it.
    fn filled(self, parts: &[&[u8]]) -> Self {
        let mut at = 0;
        for part in parts {
            // SAFETY: `at + part.len()` never exceeds the block's length, the sum of all parts; a fresh block does not overlap
            // them; every byte is written before anybody reads.
            unsafe {
                let to = self.ptr.as_ptr().add(at);
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
            }
            at += part.len();
        }
        self
    }

    /// What checks have let pass and memory has no room for.
    fn enough(block: Option<Self>) -> Self {
        block.unwrap_or_else(|| handle_alloc_error(Layout::new::<Aligned>()))
    }

    /// The allocator is asked for room to align in, not for an aligned block, which is dearer.
    ///
    /// Not zeroed, a block of the heap is not initialised, one of the pool or the arena holds what its last user left:
    /// the caller is to write all of it, or to show only what he wrote.
    fn of(arena: Option<&Arc<Arena>>, len: usize, zeroed: bool) -> Option<Self> {
        if len == 0 {
            let ptr = NonNull::<Aligned>::dangling().cast();
            return Some(Self { ptr, len, origin: Origin::Empty });
        }
        if let Some(arena) = arena {
            let block = arena.alloc(len, zeroed)?;
            return Some(Self { ptr: block.ptr(), len, origin: Origin::Arena(block) });
        }
        if len >= pool::LEAST {
            let mut pages = pool::take(len)?;
            pages.claim(len, zeroed);
            return Some(Self { ptr: pages.ptr(), len, origin: Origin::Pool(pages) });
        }
        let layout = Layout::array::<u8>(len.checked_add(ALIGN - 1)?).ok()?;
        // SAFETY: the layout's size is not zero. Who does not want it zeroed writes every byte first.
        let base = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        let base = NonNull::new(base)?;
        let skip = base.as_ptr().align_offset(ALIGN);
        // SAFETY: at most `ALIGN - 1` bytes on, inside the block.
        let ptr = unsafe { base.add(skip) };
        Some(Self { ptr, len, origin: Origin::Heap(base, layout) })
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
        match std::mem::replace(&mut self.origin, Origin::Empty) {
            // SAFETY: the block came from the allocator with this very layout.
            Origin::Heap(base, layout) => unsafe { dealloc(base.as_ptr(), layout) },
            Origin::Pool(pages) => pool::put(pages),
            Origin::Empty | Origin::Arena(_) => {}
        }
    }
}

/// Gives a dangling pointer the promised alignment.
#[repr(align(64))]
struct Aligned;

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
