//! Isolated models: each version runs in a child process, so that a crash there affects that model
//! alone.
//!
//! The child runs this same program, started as `trtserver plugin-host` ([`child`]). It opens the
//! backend, one version of one model and its instances, and executes the batches that the host
//! sends. The supervisor starts the child, waits for its end, reports the exit reason and restarts
//! it.
//!
//! Each instance has a work connection. Its messages go through two rings in shared memory
//! (`trtserver_base::arena::ring`); its socket ([`work_channel`]) wakes a side that sleeps, carries
//! long messages and files, and ends with the child. Each model has a control connection for log,
//! metrics and responses from other threads, and a backend that sends nested requests a connection
//! for these, so that a child that does not read a large response can be asked to close.
//!
//! Responses are read by a thread of the connection, or by the thread that has sent a batch and
//! polls. A fast model whose requests are independent gets up to 16 batches ahead; those that a
//! child has not taken when it ends go to the next one.
//!
//! All tensors lie in the child's arena, a sealed memory file, or in a region of a client, which
//! the child opens too, by descriptor or CUDA IPC handle. A position in a message is an offset,
//! validated before use. The child ends when its connection does, so a killed host leaves no
//! process behind.
//!
//! Terms: a *ring* is a ring buffer of *records*, which are messages, in an arena, one for each
//! direction of a work connection. An *instance session* is what remains of one instance when its
//! child is restarted.

pub mod child;
mod child_process;
mod control;
mod exit_reason;
mod facts;
mod instance;
mod launcher;
mod log_rate;
pub mod messages;
mod model;
mod nested;
mod one_shot;
mod outstanding;
mod params;
mod process;
mod regions;
mod requests;
mod responses;
#[cfg(test)]
mod responses_tests;
mod spin;
mod stdio;
mod supervisor;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, reason = "not part of the server")]
pub mod testing;
pub mod wire;
pub mod work_channel;
mod work_connection;

pub use launcher::ProcessLauncher;
