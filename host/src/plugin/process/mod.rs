//! A backend's model in a process of its own: a crash there is that model's alone.
//!
//! The process is this very program, started as `trtserver plugin-host`. It opens the backend, one version of
//! one model and its instances, and executes what the host sends.

mod answers; // what the process answers, checked
#[cfg(test)]
mod answers_tests;
mod calls; // requests that it has not answered
pub mod child; // the process
mod control; // what it tells beside answers
mod facts; // models, instances and errors as messages
mod limits; // how long it may be silent
pub mod messages; // what both say
mod output; // what it prints
mod remote; // the host's side
mod requests; // requests as messages
mod spawn; // starting, asking, killing, reaping
mod supervisor; // starting it again
pub mod wire; // how it travels
mod words; // how it ended

pub use limits::Limits;
pub use remote::{RemoteInstance, RemoteModel, complete, describe};
pub use requests::words_fit;
pub use spawn::log_level;
pub use supervisor::Health;
