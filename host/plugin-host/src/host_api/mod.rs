//! The host API: entries of the host table and of its extension tables. No panic leaves an entry.

pub(super) mod basics;
mod batches;
mod devices;
mod extensions;
mod guard;
mod inference;
mod memory;
pub mod metric;
mod outputs;
pub(crate) mod process;
pub mod reported_memory;
mod responses;
pub mod scope;
mod traces;

pub use basics::{log_level_set, set_log_level};
pub use process::set_isolated;

use crate::text::literal_view;
use trtserver_plugin_api::abi::host::{HostTable, host_flags};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};

/// The host table; valid for the life of the process.
pub fn table() -> &'static HostTable {
    let [isolated, device] = [process::is_isolated(), devices::table().is_some()].map(usize::from);
    &TABLES[isolated][device].0
}

/// By whether the process is isolated, and whether there is a device.
static TABLES: [[SharedTable; 2]; 2] = [
    [SharedTable(host_table(false, false)), SharedTable(host_table(false, true))],
    [SharedTable(host_table(true, false)), SharedTable(host_table(true, true))],
];

/// A table that all threads may read.
struct SharedTable(HostTable);

// SAFETY: the table is constant and its texts are literals.
unsafe impl Sync for SharedTable {}

const fn host_table(isolated: bool, device: bool) -> HostTable {
    let extensions = extensions::extensions(device);
    HostTable {
        size: std::mem::size_of::<HostTable>() as u64,
        abi_major: ABI_MAJOR,
        abi_minor: ABI_MINOR,
        name: literal_view(c"trtserver"),
        version: basics::VERSION,
        flags: if isolated { host_flags::ISOLATED } else { 0 },
        n_extensions: extensions.len() as u32,
        extensions: extensions.as_ptr(),
        get_extension: extensions::get_extension,
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
    }
}
