//! The plugin host: finds backend plugins, opens them, and calls them through one small interface.
//!
//! All knowledge of the binary interface on the host's side, and nearly all of its unsafe code, is here.

pub mod backend; // one backend: its settings and its entries as safe calls
pub(crate) mod backend_facts; // what a backend declares about itself
pub(crate) mod batch; // a batch as a backend sees it, and the responses it builds
pub(crate) mod cancel_flag; // whether a load is broken off, and how far it is
pub mod crash_report; // names the backend code in which the process crashed
pub(crate) mod descriptors; // models and instances described to backends
pub(crate) mod discovery; // which backends and versions there are
pub(crate) mod host_api; // the functions offered to backends
pub mod isolated; // models in child processes
pub(crate) mod isolation; // the setting: local or isolated
pub(crate) mod library; // opening a plugin file
pub mod load_priority; // low priority of loads while models serve
pub mod model; // an open model version and its instances
mod model_probe; // which files a backend recognises as models
pub mod nested; // requests of backends to models of the server
pub(crate) mod plugin_file; // a plugin, or a library that is opened through an adapter
pub mod shared_objects; // shared memory that killed processes leave behind
pub(crate) mod text; // text and errors across the interface

pub use backend_facts::DEFAULT_STACK;
pub use batch::frame::FrameHold;
pub use batch::run::Runner;
pub use batch::slot::visit_executing;
pub use batch::timing::times;
pub use batch::views::{TensorNames, ViewOptions};
pub use cancel_flag::CancelFlag;
pub use descriptors::{InstanceFacts, ModelFacts, ProbeFacts};
pub use discovery::adapters::AdapterOptions;
pub use discovery::backends::{Backends, Listed};
pub use discovery::inventory::Unusable;
pub use host_api::reported_memory::{ReportedMemory, reported_memory};
pub use host_api::scope::Patch;
pub(crate) use host_api::table as host_table;
pub use isolation::Isolation;
pub use model::AnyThread;
pub use nested::serve_nested;
pub use plugin_file::PluginFile;

/// Sets the log level of backends, in this process and in those of isolated models.
pub fn set_log_level(level: u32) {
    host_api::set_log_level(level);
    isolated::send_log_level(level);
}
