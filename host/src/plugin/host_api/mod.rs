//! What the host offers plugins: the entries of the host table, and nothing they do can unwind out of here.

pub(super) mod basics; // errors, log, time, memory, metrics, configuration
mod batches; // inputs, outputs and the end of a whole batch
pub mod metric; // metrics that backends make
mod responses; // responses, outputs, requests
pub mod scope; // which backend, model or instance calls

pub use basics::{log_level_set, set_log_level};

use crate::error::Error;
use crate::plugin::text::{PluginError, give, literal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_plugin_api::abi::host::{HostTable, HostTable1_1, host_flags};
use trtserver_plugin_api::abi::types::{self, Buf, Place, code};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};

/// Some of the host's table, for tests that play the plugin.
#[cfg(test)]
pub fn table() -> &'static HostTable {
    &TABLE.0.first
}

/// The host's table, all of it; lives for ever.
pub fn address() -> *const HostTable {
    let table =
        if ISOLATED.load(Ordering::Relaxed) { &raw const ALONE.0 } else { &raw const TABLE.0 };
    table.cast()
}

static ISOLATED: AtomicBool = AtomicBool::new(false);

/// This process runs one model for a server: before the first library is opened.
pub fn set_isolated() {
    ISOLATED.store(true, Ordering::Relaxed);
}

static TABLE: Shared = shared(0);
static ALONE: Shared = shared(host_flags::ISOLATED);

/// A table that all threads may read.
struct Shared(HostTable1_1);

const fn shared(flags: u32) -> Shared {
    Shared(HostTable1_1 { first: FIRST, flags, pad: 0 })
}

// SAFETY: the table is constant and its texts are literals.
unsafe impl Sync for Shared {}

/// Runs the body of an entry; errors and panics become an error for the plugin to free.
fn guard(body: impl FnOnce() -> Result<(), Error>) -> *mut types::Error {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(e)) => give(&e),
        Err(_) => {
            PluginError::raw(code::INTERNAL, 0, "the host failed inside this call; see its log")
        }
    }
}

/// Runs the body of an entry that returns a value; a panic gives `default`.
fn guard_value<T>(default: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(default)
}

/// Stores a result in the plugin's memory.
///
/// # Safety
/// `out` is null or has room for one value.
unsafe fn put<T>(out: *mut T, value: T) -> Result<(), Error> {
    if out.is_null() {
        return Err(Error::invalid("a host call got null where its result was to go"));
    }
    // SAFETY: by the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

/// A block of the host as plugins see it; nothing where nobody wants one.
fn block(ptr: Option<*mut u8>, bytes: u64) -> Buf {
    let (ptr, bytes) = ptr.map_or((std::ptr::null_mut(), 0), |ptr| (ptr, bytes));
    Buf { ptr, bytes, place: Place::CPU, ready: std::ptr::null_mut(), lease: 0 }
}

const FIRST: HostTable = HostTable {
    size: std::mem::size_of::<HostTable1_1>() as u64,
    abi_major: ABI_MAJOR,
    abi_minor: ABI_MINOR,
    name: literal(c"trtserver"),
    version: basics::VERSION,
    error_new: basics::error_new,
    error_code: basics::error_code,
    error_text: basics::error_text,
    error_free: basics::error_free,
    log_level: basics::log_level,
    log: basics::log,
    now_ns: basics::now_ns,
    config_patch: basics::config_patch,
    file_map: None,
    file_unmap: None,
    progress: basics::progress,
    mem_alloc: basics::mem_alloc,
    mem_free: basics::mem_free,
    mem_export: None,
    mem_budget: None,
    mem_report: None,
    event_record: None,
    event_wait: None,
    event_done: None,
    event_free: None,
    copy: None,
    device_fault: None,
    gather: Some(batches::gather),
    request_release: responses::request_release,
    request_requeue: None,
    reply_retain: responses::reply_retain,
    reply_release: responses::reply_release,
    response_new: responses::response_new,
    response_drop: responses::response_drop,
    output_query: None,
    output_alloc: responses::output_alloc,
    output_adopt: responses::output_adopt,
    response_param: responses::response_param,
    response_send: responses::response_send,
    reply_end: responses::reply_end,
    scatter_alloc: Some(batches::scatter_alloc),
    scatter_adopt: Some(batches::scatter_adopt),
    batch_send: batches::batch_send,
    state_alloc: None,
    state_commit: None,
    report_request: None,
    report_batch: None,
    report_response: None,
    trace_mark: None,
    trace_context: None,
    metric_new: basics::metric_new,
    metric_put: basics::metric_put,
    metric_get: basics::metric_get,
    metric_free: basics::metric_free,
    infer_new: None,
    infer_input: None,
    infer_want: None,
    infer_param: None,
    infer_start: None,
    infer_free: None,
    model_query: None,
    model_control: None,
};
