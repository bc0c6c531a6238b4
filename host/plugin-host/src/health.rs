//! Whether a model serves, for lookups that do not keep it open: an isolated one, or one whose
//! instances may become broken.

use crate::current_failure::CurrentFailure;
use std::sync::{Arc, Weak};
use trtserver_base::ledger::ProcessMemory;

/// Memory of an isolated model.
#[derive(Clone, Copy, Debug)]
pub struct IsolatedMemory {
    /// The child process; all zero while none runs.
    pub process: ProcessMemory,
    /// Bytes of the arenas that are in memory.
    pub inputs: u64,
    pub outputs: u64,
}

/// What [`Health`] asks of a model in a child process.
pub trait IsolatedState: Send + Sync {
    /// What the model takes beside the memory of the host.
    fn memory(&self) -> IsolatedMemory;

    /// No further request will be sent. From here on the response deadline is at most the drain
    /// time.
    fn begin_unload(self: Arc<Self>);
}

/// Health of one open model version; it does not keep the model open.
#[derive(Default)]
pub struct Health {
    failure: Arc<CurrentFailure>,
    /// State of the child process, for an isolated model.
    isolated: Option<Weak<dyn IsolatedState>>,
}

impl Health {
    /// Health of a model in a child process, whose supervisor sets and clears `failure`.
    pub fn for_isolated(failure: Arc<CurrentFailure>, state: Weak<dyn IsolatedState>) -> Arc<Self> {
        Arc::new(Self { failure, isolated: Some(state) })
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
        Some(self.isolated_state()?.memory())
    }

    /// It does not serve from now on.
    pub fn fail(&self, reason: String) {
        self.failure.set(reason);
    }

    /// No further request will be sent. From here on the response deadline is at most the drain
    /// time.
    pub fn begin_unload(&self) {
        if let Some(state) = self.isolated_state() {
            state.begin_unload();
        }
    }

    fn isolated_state(&self) -> Option<Arc<dyn IsolatedState>> {
        self.isolated.as_ref()?.upgrade()
    }
}
