//! What a model's configuration says about its queue, in the form that batchers read.

use std::collections::BTreeMap;

/// When requests are put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Most rows of a batch.
    pub max_rows: u32,
    /// Sizes worth closing a batch for, ascending; empty: as many as fit.
    pub preferred: Vec<u32>,
    /// How long the oldest request waits for company; 0 = not at all.
    pub delay_ns: u64,
}

/// What happens to a request that waited too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeoutAction {
    #[default]
    Reject,
    /// It goes behind everything of its level that has not timed out, and never times out again.
    Delay,
}

/// Rules of one priority level's queue (contract/v2 §4.7).
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
    pub batching: Option<Batching>,
    /// 0 = the model has no levels and a request's priority is ignored.
    pub levels: u64,
    pub default_level: u64,
    pub default_policy: QueuePolicy,
    /// By level, where it differs.
    pub policies: BTreeMap<u64, QueuePolicy>,
}

impl QueuePolicy {
    /// Longest wait of a request that asks for `wanted`, 0 = no limit. A request can only shorten what the policy
    /// says.
    pub fn timeout_for(&self, wanted: u64) -> u64 {
        if self.allow_override && wanted != 0 {
            self.timeout_us.min(wanted)
        } else {
            self.timeout_us
        }
    }
}

impl DynamicSettings {
    /// The level in which a request of this priority waits.
    pub fn level_of(&self, priority: u64) -> u64 {
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
    /// Sequences that an instance holds at the same time.
    pub slots: usize,
    /// A sequence that is silent for longer loses its slot.
    pub idle_ns: u64,
    pub strategy: Strategy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// A position of the batch per slot.
    Direct {
        /// How long to wait while fewer than `min_ready` slots have work.
        delay_ns: u64,
        min_ready: usize,
    },
    /// The oldest waiting requests of different sequences, without gaps.
    Oldest(Batching),
}
