//! SIGBUS guard: an access to a window whose pages are missing reads zeros instead of ending the
//! process.
//!
//! A client may truncate an object while a backend reads it. The access then raises SIGBUS in the
//! thread of the backend, in the middle of its code. The handler looks the address up in a table of
//! windows; if it is in one, it marks the window, maps anonymous zero pages over it and returns, so
//! that the instruction is executed again and succeeds. The same happens when `/dev/shm` is full,
//! or when the memory of a page is defective. Every other SIGBUS goes to the handler that was
//! installed before, which is usually that of the crash report.
//!
//! The handler uses no lock and no allocation. The slot that it finds cannot change meanwhile: the
//! thread that accesses a window holds its region. Other slots may change, so a slot is read under
//! its version, as in a seqlock.
//!
//! System calls that are given such an address fail with EFAULT and raise no signal. A thread that
//! blocks SIGBUS cannot be guarded: the kernel ends the process.

use super::limits::{MAX_REGIONS, WindowLimits};
use libc::{c_int, c_void, siginfo_t};
use parking_lot::Mutex;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Process-wide: a signal handler gets no other state.
pub static GUARD: Guard = Guard {
    windows: WindowTable::new(),
    previous: AtomicPtr::new(null_mut()),
    installing: Mutex::new(()),
};

/// The guarded windows of this process, and the handler.
pub struct Guard {
    pub windows: WindowTable<MAX_REGIONS>,
    /// The handler that was installed before. Never freed, because a signal handler may be reading
    /// it.
    previous: AtomicPtr<libc::sigaction>,
    installing: Mutex<()>,
}

/// Windows by slot. Slots are used again, their memory is never freed.
pub struct WindowTable<const N: usize> {
    slots: [WindowSlot; N],
    /// Slots from here on were never used.
    end: AtomicUsize,
    free: Mutex<FreeWindowSlots>,
}

struct FreeWindowSlots {
    slots: Vec<u32>,
    /// Bytes of all windows in the table.
    bytes: usize,
}

/// One window. The version is odd while the slot changes.
struct WindowSlot {
    version: AtomicU32,
    start: AtomicUsize,
    len: AtomicUsize,
    faulted: AtomicBool,
}

/// The limit that a window would exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowLimit {
    Windows(usize),
    Bytes(usize),
}

impl WindowSlot {
    const fn new() -> Self {
        Self {
            version: AtomicU32::new(0),
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            faulted: AtomicBool::new(false),
        }
    }

    fn set(&self, start: usize, len: usize) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.start.store(start, Ordering::SeqCst);
        self.len.store(len, Ordering::SeqCst);
        self.faulted.store(false, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// Start and length of the window, if `address` is in it.
    fn window_at(&self, address: usize) -> Option<(usize, usize)> {
        let version = self.version.load(Ordering::SeqCst);
        let start = self.start.load(Ordering::SeqCst);
        let len = self.len.load(Ordering::SeqCst);
        let stable = version.is_multiple_of(2) && self.version.load(Ordering::SeqCst) == version;
        let offset = address.checked_sub(start).filter(|offset| *offset < len);
        offset.filter(|_| stable).map(|_| (start, len))
    }
}

impl<const N: usize> WindowTable<N> {
    pub const fn new() -> Self {
        Self {
            slots: [const { WindowSlot::new() }; N],
            end: AtomicUsize::new(0),
            free: Mutex::new(FreeWindowSlots { slots: Vec::new(), bytes: 0 }),
        }
    }

    /// Adds a window, before it is accessed.
    ///
    /// # Errors
    /// There would be more windows or bytes than allowed.
    pub fn insert(
        &self,
        start: NonNull<u8>,
        len: usize,
        limits: WindowLimits,
    ) -> Result<u32, WindowLimit> {
        let mut free = self.free.lock();
        let end = self.end.load(Ordering::SeqCst);
        let windows = limits.windows.min(N);
        if end - free.slots.len() >= windows {
            return Err(WindowLimit::Windows(windows));
        }
        let bytes = free.bytes.checked_add(len).filter(|bytes| *bytes <= limits.bytes);
        free.bytes = bytes.ok_or(WindowLimit::Bytes(limits.bytes))?;
        let slot = free.slots.pop().unwrap_or(end as u32);
        self.slots[slot as usize].set(start.as_ptr().addr(), len);
        self.end.fetch_max(slot as usize + 1, Ordering::SeqCst);
        Ok(slot)
    }

    /// Removes a window that is not accessed any more, before its addresses are unmapped and may
    /// become another mapping.
    pub fn remove(&self, slot: u32) {
        let mut free = self.free.lock();
        let window = &self.slots[slot as usize];
        free.bytes -= window.len.load(Ordering::SeqCst);
        window.set(0, 0);
        free.slots.push(slot);
    }

    /// Whether pages of the window were missing.
    pub fn is_faulted(&self, slot: u32) -> bool {
        self.slots[slot as usize].faulted.load(Ordering::SeqCst)
    }

    /// Marks a window whose pages are known to be missing.
    pub fn set_faulted(&self, slot: u32) {
        self.slots[slot as usize].faulted.store(true, Ordering::SeqCst);
    }

    /// Replaces the window at `address`, if there is one, by zero pages. Async-signal-safe.
    fn replace(&self, address: usize) -> bool {
        let used = self.slots.iter().take(self.end.load(Ordering::SeqCst));
        for slot in used {
            if let Some((start, len)) = slot.window_at(address) {
                // Marked first: a thread that reads the zero pages finds the mark afterwards.
                slot.faulted.store(true, Ordering::SeqCst);
                return map_zero_pages(start, len);
            }
        }
        false
    }
}

/// The window as a whole: replacing a part of it would need a further mapping, of which the process
/// may have too many.
fn map_zero_pages(start: usize, len: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let start = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the pages of a window, which its region keeps mapped and of which nothing but bytes
    // is read.
    let mapped = unsafe { libc::mmap(start, len, access, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

thread_local! {
    /// This thread is in the previous handler. Constant and without a destructor, so that a signal
    /// handler may use it.
    static IN_PREVIOUS: Cell<bool> = const { Cell::new(false) };
}

/// Installs the handler, if it is not the current one: a backend may have installed another since
/// the last call.
pub fn install_sigbus_guard() {
    let _installing = GUARD.installing.lock();
    let mut current: MaybeUninit<libc::sigaction> = MaybeUninit::zeroed();
    // SAFETY: reads the current action into the structure, of which a zeroed one is valid.
    let current = unsafe {
        libc::sigaction(libc::SIGBUS, null(), current.as_mut_ptr());
        current.assume_init()
    };
    let handler = on_sigbus as *const () as libc::sighandler_t;
    if current.sa_sigaction == handler {
        return;
    }
    GUARD.previous.store(Box::into_raw(Box::new(current)), Ordering::SeqCst);
    // Threads with an alternate stack use it; others have their own, of which the handler needs
    // little.
    let action = libc::sigaction {
        sa_sigaction: handler,
        sa_flags: libc::SA_SIGINFO | libc::SA_ONSTACK,
        ..current
    };
    // SAFETY: the handler is async-signal-safe.
    unsafe { libc::sigaction(libc::SIGBUS, &action, null_mut()) };
}

extern "C" fn on_sigbus(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid info, and a fault has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // SAFETY: the error number of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the C library's address of this thread's error number is valid as long as the thread.
    let saved = unsafe { *errno };
    let is_fault = code == libc::BUS_ADRERR || code == libc::BUS_MCEERR_AR;
    if !(is_fault && GUARD.windows.replace(address)) {
        pass_on(signal, code, info, context);
    }
    // SAFETY: the same address of this thread's error number, on the same thread.
    unsafe { *errno = saved };
}

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// Calls the previous handler. A handler that passes the signal back to this one gets the default
/// action.
fn pass_on(signal: c_int, code: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: null, or an action that `install` leaked.
    let previous = unsafe { GUARD.previous.load(Ordering::SeqCst).as_ref() };
    let handler = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    let sent = code <= 0;
    match handler {
        libc::SIG_IGN if sent => {}
        libc::SIG_DFL | libc::SIG_IGN => end_process(signal, sent),
        _ if IN_PREVIOUS.get() => end_process(signal, sent),
        _ => {
            IN_PREVIOUS.set(true);
            // SAFETY: a handler's address; one without SA_SIGINFO ignores the other arguments,
            // which C allows on our platforms.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
            IN_PREVIOUS.set(false);
        }
    }
}

/// The default action follows: a fault occurs again at the same instruction, a signal that was sent
/// is sent again.
fn end_process(signal: c_int, sent: bool) {
    // SAFETY: async-signal-safe.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        if sent {
            libc::raise(signal);
        }
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
