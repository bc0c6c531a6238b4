//! A mapped part of a shared-memory object.

use super::guard::{self, GUARD, WindowLimit};
use super::limits::WindowLimits;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use trtserver_base::error::Error;
use trtserver_base::ledger::{LedgerHolder, MemoryTag};
use trtserver_base::reclaim;
use trtserver_device::{GpuDevice, RegisteredMemory};

/// A part of a file, mapped shared for reading and writing, and guarded against missing pages.
pub struct MappedWindow {
    /// `None` while it is dropped.
    pages: Option<WindowPages>,
    ptr: NonNull<u8>,
    slot: u32,
}

// SAFETY: a mapping may be used by any thread; it gives out addresses only.
unsafe impl Send for MappedWindow {}
// SAFETY: a shared window gives out addresses only; code that follows one synchronises the access.
unsafe impl Sync for MappedWindow {}

/// Mapped pages in the table of the guard.
struct WindowPages {
    start: NonNull<u8>,
    len: usize,
    slot: u32,
    /// Unset until a device reads the window; `None` if it cannot be pinned.
    pinned: OnceLock<Option<RegisteredMemory>>,
}

// SAFETY: a mapping may be unmapped by any thread, and only the owner of the pages does so.
unsafe impl Send for WindowPages {}

/// Why a part of a file cannot be mapped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MapError {
    System(rustix::io::Errno),
    Full(WindowLimit),
}

impl MappedWindow {
    /// Maps `len` bytes at `offset`, which are in the file. Neither needs to be a multiple of a
    /// page.
    ///
    /// # Errors
    /// The system refuses, or a limit of this process is reached.
    pub fn map(file: BorrowedFd<'_>, offset: u64, len: usize) -> Result<Self, MapError> {
        guard::install_sigbus_guard();
        let first = (offset % page_size() as u64) as usize;
        let mapped = first.checked_add(len).ok_or(MapError::System(rustix::io::Errno::NOMEM))?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, placed by the system.
        let start = unsafe {
            mmap(null_mut(), mapped, access, MapFlags::SHARED, file, offset - first as u64)
        };
        let start = start.map_err(MapError::System)?.expose_provenance();
        let Some(start) = NonNull::new(std::ptr::with_exposed_provenance_mut(start)) else {
            return Err(MapError::System(rustix::io::Errno::NOMEM));
        };
        match GUARD.windows.insert(start, mapped, WindowLimits::from_process()) {
            Ok(slot) => {
                MemoryTag::from(LedgerHolder::ClientSharedMemory).add(mapped);
                Ok(Self {
                    // SAFETY: in the first page.
                    ptr: unsafe { start.add(first) },
                    pages: Some(WindowPages { start, len: mapped, slot, pinned: OnceLock::new() }),
                    slot,
                })
            }
            Err(full) => {
                unmap_pages(start, mapped);
                Err(MapError::Full(full))
            }
        }
    }

    /// Address of the first byte.
    pub fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Whether pages were missing when the memory was accessed. They are zero since then, and
    /// private to this process.
    pub fn is_faulted(&self) -> bool {
        GUARD.windows.is_faulted(self.slot)
    }

    /// Pins the pages, when it is called first; false if they are not pinned. `refused` gets the
    /// error, once.
    pub fn pin(&self, device: &'static GpuDevice, refused: impl FnOnce(&Error)) -> bool {
        let Some(pages) = &self.pages else { return false };
        // Smaller windows are unmapped by whoever drops them, and a copy of them costs little.
        if pages.len < reclaim::MIN_SIZE {
            return false;
        }
        let pin = || {
            let whole = pages.len.next_multiple_of(page_size());
            // SAFETY: the mapping has whole pages, and is unmapped after this was dropped.
            let pinned = unsafe { device.register_memory(pages.start, whole) };
            pinned.inspect_err(refused).ok()
        };
        pages.pinned.get_or_init(pin).is_some()
    }

    pub fn set_faulted(&self) {
        GUARD.windows.set_faulted(self.slot);
    }
}

/// The last user of a region may be a network thread, which unmaps no large memory.
impl Drop for MappedWindow {
    fn drop(&mut self) {
        match self.pages.take() {
            Some(pages) if pages.len >= reclaim::MIN_SIZE => reclaim::reclaim_later(pages),
            pages => drop(pages),
        }
    }
}

impl Drop for WindowPages {
    fn drop(&mut self) {
        drop(self.pinned.take());
        MemoryTag::from(LedgerHolder::ClientSharedMemory).remove(self.len);
        GUARD.windows.remove(self.slot);
        unmap_pages(self.start, self.len);
    }
}

fn unmap_pages(start: NonNull<u8>, len: usize) {
    // SAFETY: mapped by `MappedWindow::map`; what points into it holds the window.
    let _ = unsafe { munmap(start.as_ptr().cast(), len) };
}
