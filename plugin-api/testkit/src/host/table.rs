//! The host table.

use super::{batches, devices, extensions, lock_state, outputs, responses, services};
use crate::text::{literal_str, read_str};
use trtserver_plugin_api::abi::extensions::{
    DEVICE, DEVICE_VERSION, DeviceExtension, HISTOGRAMS, HISTOGRAMS_VERSION, HistogramsExtension,
    MEMORY, MEMORY_VERSION, METRICS, METRICS_VERSION, MemoryExtension, MetricsExtension,
};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::types::{Extension, Str};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};

struct StaticHostTable(HostTable);

// SAFETY: the table is constant and its strings are literals.
unsafe impl Sync for StaticHostTable {}

const OFFERED: &[Extension] = &[
    Extension { name: literal_str(c"trts.device"), version: DEVICE_VERSION, pad: 0 },
    Extension { name: literal_str(c"trts.memory"), version: MEMORY_VERSION, pad: 0 },
    Extension { name: literal_str(c"trts.metrics"), version: METRICS_VERSION, pad: 0 },
    Extension { name: literal_str(c"trts.histograms"), version: HISTOGRAMS_VERSION, pad: 0 },
];

static MEMORY_TABLE: MemoryExtension = MemoryExtension {
    size: size_of::<MemoryExtension>() as u64,
    memory_alloc: extensions::memory_alloc,
    memory_free: extensions::memory_free,
    memory_report: extensions::memory_report,
};

static DEVICE_TABLE: DeviceExtension = DeviceExtension {
    size: size_of::<DeviceExtension>() as u64,
    event_new: devices::event_new,
    event_record: devices::event_record,
    event_wait: devices::event_wait,
    event_query: devices::event_query,
    event_destroy: devices::event_destroy,
    copy: devices::copy,
    device_fault: devices::device_fault,
};

static METRICS_TABLE: MetricsExtension = MetricsExtension {
    size: size_of::<MetricsExtension>() as u64,
    metric_new: extensions::metric_new,
    metric_put: extensions::metric_put,
    metric_get: extensions::metric_get,
    metric_free: extensions::metric_free,
    metric_add: extensions::metric_add,
};

static HISTOGRAMS_TABLE: HistogramsExtension = HistogramsExtension {
    size: size_of::<HistogramsExtension>() as u64,
    histogram_new: extensions::histogram_new,
};

unsafe extern "C" fn get_extension(name: Str, version: u32) -> *const u8 {
    // SAFETY: the name is valid during the call.
    let name = unsafe { read_str(name) };
    lock_state().lookups.push((name.clone(), version));
    match name.as_str() {
        DEVICE if version <= DEVICE_VERSION => (&raw const DEVICE_TABLE).cast(),
        MEMORY if version <= MEMORY_VERSION => (&raw const MEMORY_TABLE).cast(),
        METRICS if version <= METRICS_VERSION => (&raw const METRICS_TABLE).cast(),
        HISTOGRAMS if version <= HISTOGRAMS_VERSION => (&raw const HISTOGRAMS_TABLE).cast(),
        _ => std::ptr::null(),
    }
}

static TABLE: StaticHostTable = StaticHostTable(HostTable {
    size: size_of::<HostTable>() as u64,
    abi_major: ABI_MAJOR,
    abi_minor: ABI_MINOR,
    name: literal_str(c"trtserver test host"),
    version: literal_str(c"1"),
    flags: 0,
    n_extensions: OFFERED.len() as u32,
    extensions: OFFERED.as_ptr(),
    get_extension,
    error_new: services::error_new,
    error_code: services::error_code,
    error_text: services::error_text,
    error_free: services::error_free,
    log_level: services::log_level,
    log: services::log,
    now_ns: services::now_ns,
    config_patch: services::config_patch,
    progress: services::progress,
    gather: batches::gather,
    request_release: responses::request_release,
    responder_detach: responses::responder_detach,
    responder_release: responses::responder_release,
    response_new: responses::response_new,
    response_free: responses::response_free,
    output_alloc: outputs::output_alloc,
    output_adopt: outputs::output_adopt,
    response_param: responses::response_param,
    response_send: responses::response_send,
    responder_finish: responses::responder_finish,
    responder_backlog: responses::responder_backlog,
    scatter_alloc: outputs::scatter_alloc,
    scatter_adopt: outputs::scatter_adopt,
    batch_finish: batches::batch_finish,
});

/// The table for backends under test. Valid for the life of the process.
pub fn host_table() -> &'static HostTable {
    &TABLE.0
}
