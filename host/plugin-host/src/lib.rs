//! The plugin host: finds backend plugins, opens them, and calls them through one small interface.
//! All knowledge of the binary interface on the host's side, and nearly all of its unsafe code, is
//! here.
//!
//! # The interface in one page
//!
//! One entry symbol exchanges two tables of function pointers:
//! `trts_backend_main(host table) → backend table`. C and C++ plugins export it. Rust plugins
//! export it behind an abi_stable root module, whose layout check compares every type down to a
//! tensor before anything is called (`library`); a file with such a module is never entered through
//! the C symbol.
//!
//! The core tables contain what every host and every backend has, and do not change within a major
//! version. Everything optional is an extension table, asked for by name and version when a backend
//! is opened; both sides list what they offer, and a backend names the extensions it cannot do
//! without. Descriptors start with their size and end in reserved words, which are zero until a
//! later minor version names them. Major numbers must be equal, the backend's minor at most the
//! host's.
//!
//! **Accepted means answered.** An error from `execute` accepts nothing. After success each request
//! must be finished exactly once: by a response of its own, or with the whole batch by
//! `batch_send`. The host finishes a request that is neither finished nor detached when `execute`
//! returns, with an error that names the backend. A handle is a slot that is never freed plus a
//! generation (`batch::slot`), so that using it twice or too late is an error. Panics stop at both
//! sides of the boundary.
//!
//! A backend is closed with its last model; libraries are never closed. A file is the same plugin
//! as long as device, inode, size and time are; one that was overwritten while in use serves no
//! further models. A file that appears while the server runs is loaded by a child process first.
//!
//! # Parts
//!
//! - [`discovery`]: files, versions, the inventory of backends; [`library`]: opening a file and
//!   checking its table.
//! - [`backend`], [`model`]: an open backend, model version and instance as safe calls.
//! - [`batch`]: one batch as the backend sees it, gathering of inputs, scattering of outputs,
//!   responses.
//! - [`host_api`]: the functions offered to backends; [`nested`]: their requests to models of the
//!   server.
//! - [`child_processes`]: what this crate needs of models in child processes; `trtserver-isolation`
//!   implements it.
//! - [`crash_report`]: names the backend in whose code the process crashes.

pub mod backend;
pub mod backend_facts;
pub mod batch;
mod batch_sizes;
pub mod child_processes;
pub mod crash_report;
pub mod current_failure;
pub mod descriptors;
pub mod discovery;
pub mod health;
pub mod host_api;
mod host_state;
pub mod isolation;
pub mod isolation_limits;
pub mod library;
pub mod load_priority;
pub mod model;
mod model_probe;
pub mod nested;
pub mod plugin_file;
pub mod request_metadata;
pub mod shared_objects;
pub mod text;

pub use backend_facts::DEFAULT_STACK;
pub use batch::frame::FrameHold;
pub use batch::run::Runner;
pub use batch::slot::visit_executing;
pub use batch::timing::execution_times;
pub use batch::views::{TensorNames, ViewOptions};
pub use descriptors::{InstanceFacts, ModelFacts, ProbeFacts};
pub use discovery::adapters::AdapterOptions;
pub use discovery::backends::{BackendDirs, BackendListing, Backends};
pub use discovery::inventory::UnusableFile;
pub use host_api::reported_memory::{ReportedMemory, reported_memory};
pub use host_api::scope::Patch;
pub use host_api::table as host_table;
pub use isolation::Isolation;
pub use model::AnyThread;
pub use nested::serve_nested;
pub use plugin_file::PluginFile;
pub use trtserver_base::cancel_flag::CancelFlag;

pub use host_api::set_log_level;
