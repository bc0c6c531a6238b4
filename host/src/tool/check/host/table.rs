//! The watching host's table.

use super::{answers, basics, batches};
use crate::plugin::text::literal;
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};

/// A table that all threads may read.
pub struct Shared(pub HostTable);

// SAFETY: the table is constant and its texts are literals.
unsafe impl Sync for Shared {}

pub static TABLE: Shared = Shared(HostTable {
    size: std::mem::size_of::<HostTable>() as u64,
    abi_major: ABI_MAJOR,
    abi_minor: ABI_MINOR,
    name: literal(c"trtserver plugin check"),
    version: literal(c"1"),
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
    request_release: answers::request_release,
    request_requeue: None,
    reply_retain: answers::reply_retain,
    reply_release: answers::reply_release,
    response_new: answers::response_new,
    response_drop: answers::response_drop,
    output_query: None,
    output_alloc: answers::output_alloc,
    output_adopt: answers::output_adopt,
    response_param: answers::response_param,
    response_send: answers::response_send,
    reply_end: answers::reply_end,
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
});
