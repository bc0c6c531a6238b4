//! Whether a model serves, for lookups that do not keep it open: an isolated one, or one whose instances may become broken.

use super::current_failure::CurrentFailure;
use super::shared::{Phase, Shared};
use super::unload;
use crate::ledger::ProcessMemory;
use std::sync::{Arc, Weak};

/// Memory of an isolated model.
#[derive(Clone, Copy, Debug)]
pub struct IsolatedMemory {
    /// The child process; all zero while none runs.
    pub process: ProcessMemory,
    /// Bytes of the arenas that are in memory.
    pub inputs: u64,
    pub outputs: u64,
}

/// See the module text.
#[derive(Default)]
pub struct Health {
    failure: Arc<CurrentFailure>,
    model: Weak<Shared>,
}

impl Health {
    pub fn new(shared: &Arc<Shared>) -> Arc<Self> {
        let (failure, model) = (Arc::clone(&shared.failure), Arc::downgrade(shared));
        Arc::new(Self { failure, model })
    }

    /// Why it does not serve at the moment; `None` = it serves.
    pub fn failure(&self) -> Option<String> {
        self.failure.reason()
    }

    /// Since when it does not serve, in nanoseconds of CLOCK_MONOTONIC.
    pub fn failed_since_ns(&self) -> Option<u64> {
        self.failure.since_ns()
    }

    /// What an isolated model takes beside the memory of the host; `None` for a local one.
    pub fn memory(&self) -> Option<IsolatedMemory> {
        let shared = self.model.upgrade()?;
        let live = match &shared.lock().phase {
            Phase::Running(live) => Some(Arc::clone(live)),
            _ => None,
        };
        let of_process = live.as_ref().and_then(|live| live.process.memory());
        Some(IsolatedMemory {
            process: of_process.unwrap_or_default(),
            inputs: shared.inputs.resident(),
            outputs: live.map_or(0, |live| live.outputs.resident()),
        })
    }

    /// It does not serve from now on.
    pub fn fail(&self, reason: String) {
        self.failure.set(reason);
    }

    /// No further request will be sent. From here on the response deadline is at most the drain time.
    pub fn begin_unload(&self) {
        if let Some(shared) = self.model.upgrade() {
            unload::begin(&shared);
        }
    }
}
