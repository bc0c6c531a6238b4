//! A backend's model in a process of its own: a crash there is that model's alone.
//!
//! The process is this very program, started as `trtserver plugin-host`. It opens the backend, one version of
//! one model and its instances, and executes what the host sends.

pub mod child; // the process
mod control; // what it tells beside answers
mod exit_reason;
mod facts; // models, instances and errors as messages
mod limits; // how long it may be silent
pub mod messages; // what both say
mod process; // starting, asking, killing, reaping
mod remote; // the host's side
mod requests; // requests as messages
mod responses; // what the process answers, checked
#[cfg(test)]
mod responses_tests;
mod stdio; // what it prints
mod supervisor; // starting it again
pub mod wire; // how it travels
mod work_connection; // requests that it has not answered // how it ended

pub use limits::Limits;
pub use process::log_level;
pub use remote::{RemoteInstance, RemoteModel, complete, describe};
pub use requests::words_fit;
pub use supervisor::Health;
