//! The watching host's table.

use super::{answers, basics, batches};
use crate::plugin::text::{literal, read};
use trtserver_plugin_api::abi::extensions::{
    MEMORY, MEMORY_VERSION, METRICS, METRICS_VERSION, MemoryExtension, MetricsExtension,
};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::types::{Extension, Str};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};

/// A table that all threads may read.
pub struct Shared(pub HostTable);

// SAFETY: the table is constant and its texts are literals.
unsafe impl Sync for Shared {}

const OFFERED: &[Extension] = &[
    Extension { name: literal(c"trts.memory"), version: MEMORY_VERSION, pad: 0 },
    Extension { name: literal(c"trts.metrics"), version: METRICS_VERSION, pad: 0 },
];

static MEMORY_TABLE: MemoryExtension = MemoryExtension {
    size: std::mem::size_of::<MemoryExtension>() as u64,
    memory_alloc: basics::memory_alloc,
    memory_free: basics::memory_free,
};

static METRICS_TABLE: MetricsExtension = MetricsExtension {
    size: std::mem::size_of::<MetricsExtension>() as u64,
    metric_new: basics::metric_new,
    metric_put: basics::metric_put,
    metric_get: basics::metric_get,
    metric_free: basics::metric_free,
};

unsafe extern "C" fn get_extension(name: Str, version: u32) -> *const u8 {
    // SAFETY: the name is valid during the call.
    match unsafe { read(name) }.as_str() {
        MEMORY if version <= MEMORY_VERSION => (&raw const MEMORY_TABLE).cast(),
        METRICS if version <= METRICS_VERSION => (&raw const METRICS_TABLE).cast(),
        _ => std::ptr::null(),
    }
}

pub static TABLE: Shared = Shared(HostTable {
    size: std::mem::size_of::<HostTable>() as u64,
    abi_major: ABI_MAJOR,
    abi_minor: ABI_MINOR,
    name: literal(c"trtserver plugin check"),
    version: literal(c"1"),
    flags: 0,
    n_extensions: OFFERED.len() as u32,
    extensions: OFFERED.as_ptr(),
    get_extension,
    error_new: basics::error_new,
    error_code: basics::error_code,
    error_text: basics::error_text,
    error_free: basics::error_free,
    log_level: basics::log_level,
    log: basics::log,
    now_ns: basics::now_ns,
    config_patch: basics::config_patch,
    progress: basics::progress,
    gather: batches::gather,
    request_release: answers::request_release,
    responder_detach: answers::responder_detach,
    responder_release: answers::responder_release,
    response_new: answers::response_new,
    response_free: answers::response_free,
    output_alloc: answers::output_alloc,
    output_adopt: answers::output_adopt,
    response_param: answers::response_param,
    response_send: answers::response_send,
    responder_finish: answers::responder_finish,
    scatter_alloc: batches::scatter_alloc,
    scatter_adopt: batches::scatter_adopt,
    batch_finish: batches::batch_finish,
});
