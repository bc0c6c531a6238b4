//! Batchers: from queued requests, settings and the current time to a batch, or to the time of the
//! next attempt.
//!
//! Pure decision logic without threads, clock and I/O. [`super::queue`] calls it under the queue's
//! lock, and does the sleeping, waking and refusing that it asks for. Times are nanoseconds of one
//! monotonic clock.

mod close_rule;
pub mod dynamic;
mod fair_turns;
mod priority_list;
pub mod sequence;
pub mod settings;
mod slab;
mod timeouts;

pub use fair_turns::ClientShare;

use trtserver_request::RequestSequence;

/// A request as batchers see it.
pub trait BatchableRequest {
    /// State that the requests of one sequence share, created with the sequence.
    type Memory: Clone + Default;

    /// Batch size of the request, at least 1.
    fn rows(&self) -> u32;
    /// Requested priority level, 0 = the default.
    fn priority(&self) -> u64;
    /// Requested queue timeout, 0 = the model's.
    fn timeout_us(&self) -> u64;
    fn sequence(&self) -> &RequestSequence;
    /// Whose it is, where clients are served in turn.
    fn client(&self) -> ClientShare {
        ClientShare { key: 0, weight: 1 }
    }
    /// Its shapes and optional inputs allow a batch with `first`.
    fn compatible_with(&self, first: &Self) -> bool;
    /// Called when a request of a sequence is taken from its queue.
    fn set_memory(&mut self, _memory: &Self::Memory) {}
}

/// Identifies a queued request, so that it can be cancelled. Unique among all requests of a
/// batcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueTicket(pub u64);

/// One position of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchEntry<T> {
    Request(T),
    /// A null request, for a sequence slot without a request below one that has one.
    Null,
}

/// Why a batch was closed. Operators see in the metrics why batches are not larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The maximum was reached, or the next request would have exceeded it or the largest preferred
    /// size.
    Full,
    /// A preferred size was reached, or one that the instances are prepared for, and the requests
    /// behind it would have needed a padded run that takes longer than two.
    Preferred,
    /// The queue delay of the oldest request had passed; at once where no delay is configured.
    Delay,
    /// The model does not batch, or the request fills a batch by itself.
    Alone,
    /// The next request has other shapes, or other optional inputs.
    Shape,
    /// Filled by requests of a higher priority level that overtook older ones.
    Priority,
    /// It contains all sequences that had a request.
    Sequence,
}

/// The result of `next_batch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchDecision {
    /// Execute the batch, which was appended to the caller's vector.
    Batch(CloseReason),
    /// Nothing to execute now. `until`: when to ask for a batch even if no request arrives.
    Wait { until: Option<u64> },
}

/// Why a request leaves without being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRefusal {
    QueueFull,
    TimedOut,
    Cancelled,
    /// Another request of its sequence was cancelled, now or earlier.
    SequenceCancelled,
    /// The process that had the state of its sequence has ended.
    SequenceLost,
    /// A request of its sequence timed out before the sequence got a slot.
    SequenceTimedOut,
    /// A sequence's request with a batch size other than 1.
    NotOneRow,
    NoCorrelationId,
    /// The first request of a sequence without START.
    NoStart,
}

/// Which instances have to ask for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeTarget {
    /// Any idle instance.
    Any,
    /// This one, if it is idle.
    Instance(usize),
}
