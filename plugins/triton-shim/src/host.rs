//! The host's function table, its extensions, and texts in the form of the plugin interface.

use crate::fault::{Result, TritonFault};
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};
use trtserver_plugin_api::abi::extensions::{
    BATCH_PARTS, BATCH_PARTS_VERSION, BatchPartsExtension, HISTOGRAMS, HISTOGRAMS_VERSION,
    HistogramsExtension, MEMORY, MEMORY_VERSION, METRICS, METRICS_VERSION, MemoryExtension,
    MetricsExtension, PROCESS, PROCESS_VERSION, ProcessExtension, TRACE, TRACE_VERSION,
    TraceExtension,
};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::inference::{INFERENCE, INFERENCE_VERSION, InferenceExtension};
use trtserver_plugin_api::abi::types::{self, Str};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};

static HOST: AtomicPtr<HostTable> = AtomicPtr::new(std::ptr::null_mut());

/// Stores the host's table if this library can run on that host.
///
/// # Safety
/// `table` is null or a host table, valid for the life of the process.
pub unsafe fn accept_host(table: *const HostTable) {
    // SAFETY: by the caller's promise; size and version come first in every version of the table.
    let fits = !table.is_null()
        && unsafe {
            let (major, minor) = ((*table).abi_major, (*table).abi_minor);
            major == ABI_MAJOR
                && (major, minor) >= (ABI_MAJOR, ABI_MINOR)
                && (*table).size >= size_of::<HostTable>() as u64
        };
    if fits {
        HOST.store(table.cast_mut(), Ordering::Release);
    }
}

/// The host.
///
/// # Errors
/// No host has opened this library: a program links it as if it were Triton.
pub fn host_table() -> Result<&'static HostTable> {
    // SAFETY: null or checked by `accept`, and valid for the life of the process.
    unsafe { HOST.load(Ordering::Acquire).as_ref() }.ok_or_else(|| {
        TritonFault::unavailable(
            "this libtritonserver.so is a plugin of trtserver, and no server has opened it",
        )
    })
}

/// Converts and frees an error of the host; null is success.
///
/// # Safety
/// `error` is null or an error owned by the caller.
pub unsafe fn take_error(host: &HostTable, error: *mut types::Error) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error and its text are valid until `error_free`.
    unsafe {
        let (code, text) =
            ((host.error_code)(error), str_text((host.error_text)(error)).into_owned());
        (host.error_free)(error);
        Err(TritonFault::new(code, text))
    }
}

/// Creates an error of the host. Null, which is success, if there is no host.
pub fn raise_error(fault: &TritonFault) -> *mut types::Error {
    let Ok(host) = host_table() else { return std::ptr::null_mut() };
    // SAFETY: the text is valid during the call, which copies it.
    with_str(&fault.text, |text| unsafe { (host.error_new)(fault.code, 0, text) })
}

/// Calls `f` with a text and its terminating NUL.
pub fn with_str<R>(text: &str, f: impl FnOnce(Str) -> R) -> R {
    let n = text.len();
    let mut short = [0u8; 128];
    if let Some(head) = short.get_mut(..n).filter(|_| n < 128) {
        head.copy_from_slice(text.as_bytes());
        return f(Str { p: short.as_ptr(), n: n as u64 });
    }
    let long = [text.as_bytes(), &[0]].concat();
    f(Str { p: long.as_ptr(), n: n as u64 })
}

/// A C string as the host reads it.
pub fn as_str(text: &CStr) -> Str {
    Str { p: text.as_ptr().cast(), n: text.count_bytes() as u64 }
}

/// A text of the host.
///
/// # Safety
/// The text stays valid and unchanged for `'a`.
pub unsafe fn str_text<'a>(text: Str) -> std::borrow::Cow<'a, str> {
    if text.p.is_null() {
        return "".into();
    }
    // SAFETY: by the caller's promise.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(text.p, text.n as usize) })
}

/// A text of the host for a backend: never null.
pub fn c_str(text: Str) -> *const std::ffi::c_char {
    if text.p.is_null() { c"".as_ptr() } else { text.p.cast() }
}

/// An owned C string; ends at a NUL in the text.
pub fn owned_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(text.as_bytes().get(..end).unwrap_or_default()).unwrap_or_default()
}

/// An extension of the host.
///
/// # Safety
/// `T` is the table of that name and version.
pub unsafe fn find_extension<T>(name: &str, version: u32) -> Option<&'static T> {
    let host = host_table().ok()?;
    // SAFETY: the name is valid during the call; the result is null or a table of that name, valid
    // for the life of the process.
    with_str(name, |name| unsafe { (host.get_extension)(name, version).cast::<T>().as_ref() })
}

/// The host's memory, if it offers it.
pub fn memory_extension() -> Option<&'static MemoryExtension> {
    static TABLE: OnceLock<Option<&MemoryExtension>> = OnceLock::new();
    // SAFETY: the table of this name.
    *TABLE.get_or_init(|| unsafe { find_extension(MEMORY, MEMORY_VERSION) })
}

/// The models of the server, if the host offers them.
pub fn inference_extension() -> Option<&'static InferenceExtension> {
    static TABLE: OnceLock<Option<&InferenceExtension>> = OnceLock::new();
    // SAFETY: the table of this name.
    *TABLE.get_or_init(|| unsafe { find_extension(INFERENCE, INFERENCE_VERSION) })
}

/// Parts of a batch, if the host offers them.
pub fn batch_parts() -> Option<&'static BatchPartsExtension> {
    static TABLE: OnceLock<Option<&BatchPartsExtension>> = OnceLock::new();
    // SAFETY: the table of this name.
    *TABLE.get_or_init(|| unsafe { find_extension(BATCH_PARTS, BATCH_PARTS_VERSION) })
}

/// The host's histograms, if it offers them.
pub fn histograms_extension() -> Option<&'static HistogramsExtension> {
    static TABLE: OnceLock<Option<&HistogramsExtension>> = OnceLock::new();
    // SAFETY: the table of this name.
    *TABLE.get_or_init(|| unsafe { find_extension(HISTOGRAMS, HISTOGRAMS_VERSION) })
}

/// The host's metrics, if it offers them.
pub fn metrics_extension() -> Option<&'static MetricsExtension> {
    static TABLE: OnceLock<Option<&MetricsExtension>> = OnceLock::new();
    // SAFETY: the table of this name.
    *TABLE.get_or_init(|| unsafe { find_extension(METRICS, METRICS_VERSION) })
}

/// The process of an isolated model, if the host offers it.
pub fn process_extension() -> Option<&'static ProcessExtension> {
    static TABLE: OnceLock<Option<&ProcessExtension>> = OnceLock::new();
    // SAFETY: the table of this name.
    *TABLE.get_or_init(|| unsafe { find_extension(PROCESS, PROCESS_VERSION) })
}

/// Traces of requests, if the host offers them.
pub fn trace_extension() -> Option<&'static TraceExtension> {
    static TABLE: OnceLock<Option<&TraceExtension>> = OnceLock::new();
    // SAFETY: the table of this name.
    *TABLE.get_or_init(|| unsafe { find_extension(TRACE, TRACE_VERSION) })
}
