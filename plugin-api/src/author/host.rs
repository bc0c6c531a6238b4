//! The host table as this library sees it, and the small conversions every other file needs.

use crate::abi::extensions::{
    self, DeviceExtension, HistogramsExtension, MemoryExtension, MetricsExtension,
};
use crate::abi::host::HostTable;
use crate::abi::inference::{self, InferenceExtension};
use crate::abi::types::{Bytes, Str};
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Each plugin has its own copy of this crate, hence its own pointer.
static HOST: AtomicPtr<HostTable> = AtomicPtr::new(ptr::null_mut());

/// The host that loaded this library. Copyable, valid for the life of the process.
#[derive(Clone, Copy)]
pub(crate) struct Host(&'static HostTable);

// SAFETY: the table never changes, and its entries may be called from any thread.
unsafe impl Send for Host {}
// SAFETY: the table never changes, and any number of threads may call its entries at once.
unsafe impl Sync for Host {}

impl Host {
    /// `None` until a compatible host has called `trts_backend_main`.
    pub(crate) fn get() -> Option<Host> {
        // SAFETY: the pointer was checked by `accept`, and a host table is valid for the life of
        // the process.
        unsafe { HOST.load(Ordering::Acquire).as_ref() }.map(Host)
    }

    /// Stores the host if this library can run on it.
    ///
    /// # Safety
    /// `table` is null or a host table, valid for the life of the process.
    pub(crate) unsafe fn accept(table: *const HostTable) {
        if table.is_null() {
            return;
        }
        // SAFETY: size and version come first in every version of the table.
        let (size, major, minor) =
            unsafe { ((*table).size, (*table).abi_major, (*table).abi_minor) };
        let fits = major == crate::abi::ABI_MAJOR
            && (major, minor) >= (crate::abi::ABI_MAJOR, crate::abi::ABI_MINOR)
            && size >= size_of::<HostTable>() as u64;
        if fits {
            HOST.store(table.cast_mut(), Ordering::Release);
        }
    }

    /// The host's metrics, if it offers them. One lookup: callers keep the result.
    pub(crate) fn metrics(self) -> Option<&'static MetricsExtension> {
        // SAFETY: the type of this name.
        unsafe { self.extension(extensions::METRICS, extensions::METRICS_VERSION) }
    }

    /// As [`Host::metrics`], for histograms.
    pub(crate) fn histograms(self) -> Option<&'static HistogramsExtension> {
        // SAFETY: the type of this name.
        unsafe { self.extension(extensions::HISTOGRAMS, extensions::HISTOGRAMS_VERSION) }
    }

    /// As [`Host::metrics`], for memory.
    pub(crate) fn memory(self) -> Option<&'static MemoryExtension> {
        // SAFETY: the type of this name.
        unsafe { self.extension(extensions::MEMORY, extensions::MEMORY_VERSION) }
    }

    /// As [`Host::metrics`], for devices.
    pub(crate) fn device(self) -> Option<&'static DeviceExtension> {
        // SAFETY: the type of this name.
        unsafe { self.extension(extensions::DEVICE, extensions::DEVICE_VERSION) }
    }

    /// As [`Host::metrics`], for nested inference.
    pub(crate) fn inference(self) -> Option<&'static InferenceExtension> {
        // SAFETY: the type of this name.
        unsafe { self.extension(inference::INFERENCE, inference::INFERENCE_VERSION) }
    }

    /// # Safety
    /// `T` is the table of that name.
    unsafe fn extension<T>(self, name: &str, version: u32) -> Option<&'static T> {
        with_str(name, |name| {
            // SAFETY: the name is valid during the call; what comes back is null or a table of that
            // name, valid for the life of the process.
            unsafe { (self.get_extension)(name, version).cast::<T>().as_ref() }
        })
    }
}

impl Deref for Host {
    type Target = HostTable;
    fn deref(&self) -> &HostTable {
        self.0
    }
}

/// Calls `f` with a text in the form of the interface: with its length and a terminating NUL.
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

/// A text with its terminating NUL, for data that outlives a call.
pub(crate) struct OwnedText(Box<[u8]>);

impl OwnedText {
    pub(crate) fn new(text: &str) -> OwnedText {
        OwnedText([text.as_bytes(), &[0]].concat().into_boxed_slice())
    }

    pub(crate) fn get(&self) -> Str {
        Str { p: self.0.as_ptr(), n: (self.0.len() - 1) as u64 }
    }
}

/// # Safety
/// The bytes stay valid and unchanged for `'a`.
pub(crate) unsafe fn as_bytes<'a>(p: *const u8, n: u64) -> &'a [u8] {
    // SAFETY: passed on to the caller.
    unsafe { as_slice(p, n) }
}

/// # Safety
/// `n` elements at `p` stay valid and unchanged for `'a`; a null `p` or zero `n` is an empty slice.
pub(crate) unsafe fn as_slice<'a, T>(p: *const T, n: u64) -> &'a [T] {
    if p.is_null() || n == 0 {
        return &[];
    }
    // SAFETY: passed on to the caller.
    unsafe { std::slice::from_raw_parts(p, n as usize) }
}

/// Text of a [`Str`]; empty if it is not UTF-8, which the interface forbids.
///
/// # Safety
/// The text stays valid and unchanged for `'a`.
pub(crate) unsafe fn as_text<'a>(text: Str) -> &'a str {
    // SAFETY: passed on to the caller.
    std::str::from_utf8(unsafe { as_bytes(text.p, text.n) }).unwrap_or_default()
}

/// # Safety
/// The conditions of [`as_bytes`].
pub(crate) unsafe fn as_blob<'a>(bytes: Bytes) -> &'a [u8] {
    // SAFETY: passed on to the caller.
    unsafe { as_bytes(bytes.p, bytes.n) }
}
