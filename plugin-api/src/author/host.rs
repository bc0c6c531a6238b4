//! The host's table as this library sees it, and the small conversions every other file needs.

use crate::abi::host::{HostTable, HostTable1_1};
use crate::abi::types::{Bytes, Str};
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Each plugin library has its own copy of this crate, hence its own pointer.
static HOST: AtomicPtr<HostTable> = AtomicPtr::new(ptr::null_mut());

/// The host that loaded this library. Copyable, valid for ever.
#[derive(Clone, Copy)]
pub(crate) struct Host(&'static HostTable);

// SAFETY: the table never changes, and its entries may be called from any thread.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Host {
    /// Null until a host whose interface fits has called `trts_plugin_main`.
    pub(crate) fn get() -> Option<Host> {
        // SAFETY: the pointer was checked by `accept`, and a host's table lives for ever.
        unsafe { HOST.load(Ordering::Acquire).as_ref() }.map(Host)
    }

    /// Remembers the host if this library can run on it.
    ///
    /// # Safety
    /// `table` is null or a host's table, valid for ever.
    pub(crate) unsafe fn accept(table: *const HostTable) {
        if table.is_null() {
            return;
        }
        // SAFETY: size and version come first in every version of the table.
        let (size, major, minor) =
            unsafe { ((*table).size, (*table).abi_major, (*table).abi_minor) };
        let fits = major == crate::abi::ABI_MAJOR
            && minor >= crate::abi::ABI_MINOR
            && size >= size_of::<HostTable>() as u64;
        if fits {
            HOST.store(table.cast_mut(), Ordering::Release);
        }
    }
}

impl Host {
    /// Bits of `host_flags`.
    pub(crate) fn flags(self) -> u32 {
        if self.0.size < size_of::<HostTable1_1>() as u64 {
            return 0;
        }
        let whole = HOST.load(Ordering::Acquire).cast::<HostTable1_1>();
        // SAFETY: the table says that it goes that far, and lives for ever.
        unsafe { (*whole).flags }
    }
}

impl Deref for Host {
    type Target = HostTable;
    fn deref(&self) -> &HostTable {
        self.0
    }
}

/// Lends a text to the host in the form that the interface asks for: counted and NUL-terminated.
pub(crate) fn with_str<R>(text: &str, f: impl FnOnce(Str) -> R) -> R {
    let n = text.len();
    let mut short = [0u8; 128];
    if n < short.len() {
        short[..n].copy_from_slice(text.as_bytes());
        return f(Str { p: short.as_ptr(), n: n as u64 });
    }
    let long = [text.as_bytes(), &[0]].concat();
    f(Str { p: long.as_ptr(), n: n as u64 })
}

/// A text with its terminator, kept for the descriptors that outlive a call.
pub(crate) struct Kept(Box<[u8]>);

impl Kept {
    pub(crate) fn new(text: &str) -> Kept {
        Kept([text.as_bytes(), &[0]].concat().into_boxed_slice())
    }

    pub(crate) fn get(&self) -> Str {
        Str { p: self.0.as_ptr(), n: (self.0.len() - 1) as u64 }
    }
}

/// # Safety
/// The bytes stay valid and unchanged for `'a`.
pub(crate) unsafe fn bytes_of<'a>(p: *const u8, n: u64) -> &'a [u8] {
    // SAFETY: passed on to the caller.
    unsafe { slice_of(p, n) }
}

/// # Safety
/// `n` elements at `p` stay valid and unchanged for `'a`; a null `p` or zero `n` is an empty slice.
pub(crate) unsafe fn slice_of<'a, T>(p: *const T, n: u64) -> &'a [T] {
    if p.is_null() || n == 0 {
        return &[];
    }
    // SAFETY: passed on to the caller.
    unsafe { std::slice::from_raw_parts(p, n as usize) }
}

/// Text of a counted string; empty if it is not UTF-8, which the interface rules out.
///
/// # Safety
/// The text stays valid and unchanged for `'a`.
pub(crate) unsafe fn text_of<'a>(text: Str) -> &'a str {
    // SAFETY: passed on to the caller.
    std::str::from_utf8(unsafe { bytes_of(text.p, text.n) }).unwrap_or_default()
}

/// # Safety
/// As [`bytes_of`].
pub(crate) unsafe fn blob_of<'a>(bytes: Bytes) -> &'a [u8] {
    // SAFETY: passed on to the caller.
    unsafe { bytes_of(bytes.p, bytes.n) }
}
