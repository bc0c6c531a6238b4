//! Backends: found in directories, opened once, called through one small interface.
//!
//! All knowledge of the binary interface on the host's side, and nearly all of its unsafe code, is here.

pub mod backend; // one backend, and the safe face of its entries
mod backends; // all of them, in all their versions
#[cfg(test)]
mod batch_tests; // gathering and scattering
pub(crate) mod declared; // an output against its declaration
pub(crate) mod describe; // descriptors that plugins may point into
mod file; // a file before it is opened
pub(crate) mod find; // where backends may lie
mod frame; // a batch as plugins see it
mod gather; // an input of all calls as one block
mod host_calls; // what the host offers plugins
pub(crate) mod isolation; // in the server's process or in one of its own
mod known; // versions at one moment
pub(crate) mod library; // opening a file, with words for what can be wrong
mod memory; // memory that becomes an output
pub mod metric; // metrics that plugins make
pub mod model; // an open model version, and its instances
mod nudge; // cancellations, told to plugins
mod outputs; // a response while it is built
pub mod process; // models in processes of their own
mod refusal; // why a file is no backend
mod run; // one batch through an instance
mod scatter; // an output of all calls as one block
pub(crate) mod scope; // who speaks
mod slot; // what the handles of a call stand for
mod table; // what a plugin hands over, checked
pub(crate) mod text; // text and errors across the boundary
mod version; // the order of version texts
mod views; // the flat arrays of a batch

pub use backend::DEFAULT_STACK;
pub use backends::{Backends, Listed};
pub use describe::{InstanceFacts, ModelFacts};
pub use frame::{FrameHold, times};
pub(crate) use host_calls::address as host_table;
pub use host_calls::set_log_level;
pub use isolation::Isolation;
pub use known::Unusable;
pub use model::AnyThread;
pub use run::Runner;
pub use scope::Patch;
pub use views::{Style, TensorNames};
