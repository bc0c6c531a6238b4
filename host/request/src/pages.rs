//! Anonymous memory mappings: whole pages, zeroed by the kernel, unmapped when dropped.

use super::buffer::BUFFERS;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// Size of a transparent huge page on the supported platforms.
const HUGE_PAGE: usize = 2 << 20;
/// Unmapping holds a lock of the address space for as long as pages are freed, so they are freed in
/// steps of this size before.
const FREE_STEP: usize = 4 << 20;

/// One mapping, and how much of it was written.
pub struct MappedPages {
    base: NonNull<u8>,
    len: usize,
    /// Bytes from the start that may not be zero.
    dirty: usize,
}

// SAFETY: a mapping is owned memory, like a `Vec<u8>`.
unsafe impl Send for MappedPages {}
// SAFETY: shared access gives the address only.
unsafe impl Sync for MappedPages {}

impl MappedPages {
    /// Maps `len` bytes (not 0); `None` if the kernel refuses. Takes no physical memory until
    /// written.
    pub fn map(len: usize) -> Option<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh mapping at an address that the kernel picks.
        let base = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, access, flags) };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        let pages = Self { base, len, dirty: 0 };
        pages.prefer_huge();
        BUFFERS.mapped.fetch_add(len, Ordering::Relaxed);
        Some(pages)
    }

    /// Changes the size to `len` bytes (not 0), without a copy; the address may change. False if
    /// the kernel refuses.
    pub fn resize(&mut self, len: usize) -> bool {
        let (base, flags) = (self.base.as_ptr().cast(), MremapFlags::MAYMOVE);
        // SAFETY: mapped with this length; every pointer into it is derived from this value, which
        // is borrowed exclusively.
        let moved = unsafe { rustix::mm::mremap(base, self.len, len, flags) };
        let Some(base) = moved.ok().and_then(|base| NonNull::new(base.cast())) else {
            return false;
        };
        BUFFERS.mapped.fetch_sub(self.len, Ordering::Relaxed);
        BUFFERS.mapped.fetch_add(len, Ordering::Relaxed);
        (self.base, self.len, self.dirty) = (base, len, self.dirty.min(len));
        self.prefer_huge();
        true
    }

    /// One page fault instead of 512 where huge pages are enabled.
    fn prefer_huge(&self) {
        if self.len >= HUGE_PAGE {
            let base = self.base.as_ptr().cast();
            // SAFETY: the whole mapping; advice changes nothing that is read or written.
            let _ = unsafe { rustix::mm::madvise(base, self.len, Advice::LinuxHugepage) };
        }
    }

    pub fn ptr(&self) -> NonNull<u8> {
        self.base
    }

    pub fn size(&self) -> usize {
        self.len
    }

    /// Prepares the first `len` bytes for writing. Zeroes them if `zeroed`; otherwise they hold the
    /// previous user's data.
    pub fn claim(&mut self, len: usize, zeroed: bool) {
        debug_assert!(len <= self.len);
        if zeroed {
            // SAFETY: inside the mapping, which is borrowed exclusively.
            unsafe { self.base.write_bytes(0, len.min(self.dirty)) };
        }
        self.dirty = self.dirty.max(len);
    }
}

impl Drop for MappedPages {
    fn drop(&mut self) {
        BUFFERS.mapped.fetch_sub(self.len, Ordering::Relaxed);
        for at in (0..self.dirty).step_by(FREE_STEP).filter(|_| self.dirty > FREE_STEP) {
            let step = FREE_STEP.min(self.len - at);
            // SAFETY: inside the mapping, which nothing reads again. It begins at a page, and `at`
            // is a multiple of pages.
            let _ = unsafe {
                rustix::mm::madvise(self.base.as_ptr().add(at).cast(), step, Advice::LinuxDontNeed)
            };
        }
        // SAFETY: mapped with this length in `map`; every pointer into it is derived from this
        // value, which is dropped.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
