//! Queue and batching settings of a model, in the form that batchers read.

use std::collections::BTreeMap;

/// When requests are batched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchingSettings {
    /// Most rows of a batch.
    pub max_rows: u32,
    /// Preferred batch sizes, ascending; empty: as many rows as fit.
    pub preferred: Vec<u32>,
    /// How long the oldest request waits for further ones; 0 = not at all.
    pub delay_ns: u64,
}

/// A number of rows that the instances of a model are prepared for: they pad a batch with fewer
/// rows to the next such number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedSize {
    pub rows: u32,
    /// How long a run of this size takes; 0 = unknown.
    pub run_ns: u64,
}

/// What happens to a request whose queue timeout passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeoutAction {
    #[default]
    Reject,
    /// It is served after all requests of its level that have not timed out, and has no timeout any
    /// more.
    Delay,
}

/// The queue policy of one priority level (docs/protocol/v2.md §4.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    /// Most waiting requests, 0 = no limit.
    pub max_size: u32,
    /// 0 = no timeout, and then a request's own has no effect either.
    pub timeout_us: u64,
    pub action: TimeoutAction,
    /// A request may shorten its timeout.
    pub allow_override: bool,
}

/// For [`super::dynamic::DynamicBatcher`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicSettings {
    /// `None`: every request is executed alone.
    pub batching: Option<BatchingSettings>,
    /// 0 = the model has no levels and a request's priority is ignored.
    pub levels: u64,
    pub default_level: u64,
    pub default_policy: QueuePolicy,
    /// By level, where it differs.
    pub policies: BTreeMap<u64, QueuePolicy>,
    /// Clients are served in turn within a level.
    pub fair: bool,
}

impl QueuePolicy {
    /// Timeout of a request that asks for `requested`, 0 = none. A request can only shorten the
    /// policy's.
    pub fn timeout_for(&self, requested: u64) -> u64 {
        if self.allow_override && requested != 0 {
            self.timeout_us.min(requested)
        } else {
            self.timeout_us
        }
    }
}

impl DynamicSettings {
    /// The priority level of a request with this priority.
    pub fn priority_level(&self, priority: u64) -> u64 {
        match priority {
            _ if self.levels == 0 => 0,
            priority if (1..=self.levels).contains(&priority) => priority,
            _ => self.default_level,
        }
    }

    pub fn policy(&self, level: u64) -> &QueuePolicy {
        let own = if self.levels == 0 { None } else { self.policies.get(&level) };
        own.unwrap_or(&self.default_policy)
    }
}

/// For [`super::sequence::SequenceBatcher`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceSettings {
    pub instances: usize,
    /// Sequence slots of each instance.
    pub slots: usize,
    /// A sequence without requests for longer loses its slot.
    pub idle_ns: u64,
    pub strategy: SequenceStrategy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceStrategy {
    /// One batch position per slot.
    Direct {
        /// How long to wait while fewer than `min_ready` slots have a request.
        delay_ns: u64,
        min_ready: usize,
    },
    /// The oldest queued requests of different sequences, without gaps.
    Oldest(BatchingSettings),
}
