//! Batch forming, pure: what waits, the model's policy and `now` give a batch or the next moment to look.
//!
//! Batchers have no thread, no clock and no I/O; [`super::queue`] calls them under the model's lock and does the
//! waiting, waking and answering that they ask for. Times are nanoseconds of one monotonic clock.

mod close_rule; // when a batch is closed
pub mod dynamic; // the default scheduler and the dynamic batcher
mod priority_list; // queued requests in service order
pub mod sequence; // the sequence batcher
pub mod settings; // queue and batching settings
mod slab; // storage of queued requests, and their tickets
mod timeouts; // heap of queue timeouts

use crate::request::Sequence;

/// A request as far as batch forming is concerned.
pub trait Batchable {
    /// What requests of one sequence share, made when the sequence begins.
    type Memory: Clone + Default;

    /// Batch size of the request, at least 1.
    fn rows(&self) -> u32;
    /// Level that the caller asked for, 0 = the default.
    fn priority(&self) -> u64;
    /// Longest wait in the queue that the caller accepts, 0 = no opinion.
    fn timeout_us(&self) -> u64;
    fn sequence(&self) -> &Sequence;
    /// True when the shapes (and the set of optional inputs) let it stand in one batch with `first`.
    fn compatible_with(&self, first: &Self) -> bool;
    /// Called when a request of a sequence is taken from its queue.
    fn set_memory(&mut self, _memory: &Self::Memory) {}
}

/// Names a waiting request, so that it can be taken back. Never the same for two requests of a batcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueTicket(pub u64);

/// One position of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchEntry<T> {
    Request(T),
    /// A sequence slot below a busy one that has nothing to do: the model sees a null request there.
    Null,
}

/// Why a batch was closed; the operator's answer to "why is it not bigger?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The maximum was reached, or the next request would have exceeded it or the largest preferred size.
    Full,
    /// A preferred size was reached.
    Preferred,
    /// The oldest request had waited as long as it may; at once where no delay is configured.
    Delay,
    /// The model does not batch, or the request fills a batch by itself.
    Alone,
    /// The next request has other shapes, or other optional inputs.
    Shape,
    /// Filled by requests of a higher level that overtook older ones.
    Priority,
    /// All sequences that had something to do are in it.
    Sequence,
}

/// What `form` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchDecision {
    /// The batch was appended to the caller's vector.
    Batch(CloseReason),
    /// Nothing to execute now. `until`: look again then, even if nothing arrives.
    Wait { until: Option<u64> },
}

/// Why a request leaves without being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    QueueFull,
    TimedOut,
    Cancelled,
    /// Another request of its sequence was cancelled, now or earlier.
    SequenceCancelled,
    /// The process that held the state of its sequence has ended.
    SequenceLost,
    /// A request of its sequence timed out before the sequence got a slot.
    SequenceTimedOut,
    /// A sequence's request with a batch size other than 1.
    NotOneRow,
    NoCorrelationId,
    /// The first request of a sequence without START.
    NoStart,
}

/// Which instances ought to look at the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// One that is idle, whichever.
    Any,
    /// This one, if it is idle.
    Instance(usize),
}
