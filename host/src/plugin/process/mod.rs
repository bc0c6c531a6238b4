//! A backend's model in a process of its own: a crash there is that model's alone.
//!
//! The process is this very program, started as `trtserver plugin-host`. It opens the backend, one version of
//! one model and its instances, and executes what the host sends.

pub mod child; // the process
pub mod messages; // what both say
mod remote; // the host's side
pub mod wire; // how it travels

pub use remote::{RemoteInstance, RemoteModel, complete, describe};
