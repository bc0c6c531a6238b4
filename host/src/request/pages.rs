//! Anonymous memory mappings: whole pages, zeroed by the kernel, unmapped when dropped.

use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ptr::NonNull;

/// Size of a transparent huge page on the supported platforms.
const HUGE_PAGE: usize = 2 << 20;

/// One mapping, and how much of it was written.
pub struct Pages {
    base: NonNull<u8>,
    len: usize,
    /// Bytes from the start that may not be zero.
    dirty: usize,
}

// SAFETY: a mapping is owned memory, like a `Vec<u8>`.
unsafe impl Send for Pages {}
// SAFETY: shared access gives the address only.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps `len` bytes (not 0); `None` if the kernel refuses. Takes no physical memory until written.
    pub fn map(len: usize) -> Option<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh mapping at an address that the kernel picks.
        let base = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, access, flags) };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        if len >= HUGE_PAGE {
            // One page fault instead of 512 where huge pages are enabled; ignored otherwise.
            // SAFETY: the mapping just made; advice changes nothing that is read or written.
            let _ =
                unsafe { rustix::mm::madvise(base.as_ptr().cast(), len, Advice::LinuxHugepage) };
        }
        Some(Self { base, len, dirty: 0 })
    }

    pub fn ptr(&self) -> NonNull<u8> {
        self.base
    }

    pub fn size(&self) -> usize {
        self.len
    }

    /// Prepares the first `len` bytes for writing. Zeroes them if `zeroed`; otherwise they hold the previous user's data.
    pub fn claim(&mut self, len: usize, zeroed: bool) {
        debug_assert!(len <= self.len);
        if zeroed {
            // SAFETY: inside the mapping, which is borrowed exclusively.
            unsafe { self.base.write_bytes(0, len.min(self.dirty)) };
        }
        self.dirty = self.dirty.max(len);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped with this length in `map`; every pointer into it is derived from this value, which is dropped.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
