//! Requests in flight by model version, for the log of a shutdown.

use super::OpenVersion;
use std::sync::{Arc, Weak};
use trtserver_base::stats::VersionStats;
use trtserver_scheduler::{RequestQueue, Scheduler};

/// Counts the requests of a version without keeping it open.
pub struct VersionInFlight {
    pub name: Arc<str>,
    pub version: i64,
    stats: Arc<VersionStats>,
    /// Dangling for an ensemble, whose requests wait in the queues of its steps.
    queue: Weak<RequestQueue>,
}

impl VersionInFlight {
    pub(super) fn from_version(served: &OpenVersion) -> Self {
        let queue = match &served.scheduler {
            Scheduler::Queue(queue) => Arc::downgrade(queue),
            Scheduler::Ensemble(_) => Weak::new(),
        };
        let (name, stats) = (Arc::clone(&served.name), Arc::clone(&served.stats));
        Self { name, version: served.version, stats, queue }
    }

    /// Requests that wait or execute. Of a sequence model at least the sequences that have not
    /// ended, as in Triton.
    pub fn count(&self) -> u64 {
        let executing = self.stats.snapshot().executing();
        let Some(queue) = self.queue.upgrade() else { return executing };
        let sequences = queue.active_sequences() as u64;
        sequences.max(executing + queue.waiting() as u64)
    }
}
