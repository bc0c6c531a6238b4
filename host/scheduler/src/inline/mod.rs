//! Inline execution: the submitting network thread runs an idle instance itself, saving two context
//! switches.
//!
//! A context switch costs 5 to 30 µs of CPU time and latency, a batch of a small model about 1 µs.
//! So when `submit` would wake an idle instance, the submitting thread may run it instead.
//! Afterwards it takes further batches for a short time, then the instance is idle again. Every
//! limit protects the connections of the network threads, which wait meanwhile:
//!
//! - [`permit`]: one network thread never executes, and nothing nests: a request that is submitted
//!   while a response is delivered (an ensemble's next step) goes to another thread.
//! - [`watchdog`]: when a thread is held up, an idle one takes over its sockets.
//! - [`debt`]: only instances whose batches take at most 0.1 ms on average.
//! - [`postponement`]: a batching model is run at the end of the thread's turn ([`PostponedRun`]),
//!   so that what was read on other connections joins the batch.
//! - `models/src/instance/worker.rs`: only backends that allow any thread, and isolated ones; no
//!   GPU, niced or large-stack instances.
//! - `queue/submit.rs`: no request with a deadline or of a decoupled model, and from a stream only
//!   where requests are independent of each other.
//!
//! The states of an instance and their transitions are in `queue/instances.rs`. The queue and this
//! module call each other: `submit` hands a thread to the instance, which asks the queue for
//! batches through its [`InlineRun`].

mod debt;
mod instance;
mod permit;
mod postponed;
mod postponement;
mod run;
mod watchdog;

pub use instance::{InstanceExecutor, SharedInstance};
pub use permit::{InlinePermit, InlinePermits};
pub(crate) use permit::{can_postpone, postpone};
pub use postponed::PostponedRun;
pub use run::InlineRun;

/// An instance that a network thread may run while the instance's own thread sleeps.
pub trait InlineInstance: Send + Sync {
    /// Its slow-batch debt is below the limit.
    fn is_fast(&self) -> bool;

    /// Its executions gain more from requests that join them than these lose by waiting for the
    /// end of the thread's turn.
    fn gains_by_waiting(&self) -> bool;

    /// Executes batches on this thread until `run` has none or has taken long enough. `now`: the
    /// current time.
    fn run(&self, run: InlineRun<'_>, now: u64);

    /// Blocks until the backend accepts another batch.
    fn wait_for_capacity(&self);
}
