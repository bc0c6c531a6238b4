//! Isolated models: each version runs in a child process, so that a crash there affects that model alone.
//!
//! The child runs this same program, started as `trtserver plugin-host`. It opens the backend, one version of one
//! model and its instances, and executes the batches that the host sends. Beside the work connections there is one
//! control connection per child. Tensors are in shared memory (`crate::arena`).

pub mod child; // the child process
mod child_process; // starts and reaps a child
mod control; // reads the control connection
mod exit_reason; // how a child ended
mod facts; // backend, model and instance facts as messages
mod instance; // an isolated instance, as the rest of the server sees it
mod limits; // response and open deadlines
pub mod messages; // the protocol
mod model; // an isolated model, as the rest of the server sees it
mod nested; // requests of the child to models of the server
mod one_shot; // children that serve one control request
mod outstanding; // outstanding requests of an instance
mod params; // request and response parameters as messages
mod process; // one child: control requests, kill, wait
mod regions; // client shared memory that the child maps, too
mod requests; // requests as messages
mod responses; // responses from the child, checked
#[cfg(test)]
mod responses_tests;
mod spin; // polling before a thread sleeps
mod stdio; // standard output and error of a child
mod supervisor; // restarts the child
#[cfg(any(test, feature = "fuzzing"))]
#[allow(clippy::unwrap_used, reason = "not part of the server")]
pub mod testing; // the host's side of a child's connections
pub mod wire; // framing of messages
pub mod work_channel; // messages of a work connection
mod work_connection; // sends batches and cancellations

pub use child_process::send_log_level;
pub use instance::IsolatedInstance;
pub use limits::Limits;
pub use model::IsolatedModel;
pub use one_shot::{complete, describe, open, probe};
pub use requests::check_metadata_size;
pub use supervisor::{Health, IsolatedMemory};
