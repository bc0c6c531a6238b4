//! Memory straight from the system: whole pages, zero when they come, given back the moment they are dropped.

use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ptr::NonNull;

/// What the system calls a huge page on all that we run on.
const HUGE: usize = 2 << 20;

/// A mapping of its own, with what was written into it.
pub struct Pages {
    base: NonNull<u8>,
    len: usize,
    /// Bytes from the start that may not be zero.
    dirty: usize,
}

// SAFETY: a mapping is memory of its own, like a `Vec<u8>`.
unsafe impl Send for Pages {}
// SAFETY: shared access gives the address only.
unsafe impl Sync for Pages {}

impl Pages {
    /// A mapping of `len` bytes, not 0; `None` when the system refuses. Until it is written to it costs addresses only.
    pub fn map(len: usize) -> Option<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh mapping, placed by the system.
        let base = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, access, flags) };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        if len >= HUGE {
            // One fault instead of 512, where the system has such pages; elsewhere nothing is lost.
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

    /// The first `len` bytes are going to be written. `zeroed`: they are zero until then, otherwise whatever the user
    /// before left there.
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
        // SAFETY: mapped with this length in `map`; whoever points into it owns it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
