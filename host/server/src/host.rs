//! What the parts of one server share below its `FrontendContext`: made at the start and passed
//! down. The statics of the process are listed on the crate page.

use std::sync::Arc;
use trtserver_base::budget::OpenCallLimit;
use trtserver_base::heap::HeapTrimmer;
use trtserver_base::timer::DeadlineTimer;
use trtserver_base::upkeep;
use trtserver_config::ServerSettings;
use trtserver_isolation::ProcessLauncher;
use trtserver_wire::decode_workers;

/// Shared by the parts of one server.
pub struct Host {
    /// Calls queues and the memory pools at deadlines.
    pub timer: &'static DeadlineTimer,
    /// Network threads trim it before they sleep.
    pub heap: Arc<HeapTrimmer>,
    /// Open gRPC calls of all connections.
    pub open_calls: &'static OpenCallLimit,
    /// Starts the processes of isolated models.
    pub launcher: Arc<ProcessLauncher>,
}

impl Host {
    /// Starts the threads that every server has.
    ///
    /// # Errors
    /// A thread does not start; the text says which.
    pub fn start(
        settings: &ServerSettings,
        launcher: Arc<ProcessLauncher>,
    ) -> Result<Self, String> {
        decode_workers::start_workers(settings.decode_thread_count)
            .map_err(|e| format!("cannot start the decode workers: {e}"))?;
        let timer = DeadlineTimer::leak();
        launcher.use_timer(timer);
        let upkeep = upkeep::start_upkeep(timer)
            .map_err(|e| format!("cannot start the thread that frees memory: {e}"))?;
        let max_calls = settings.connections.max_open_calls.unwrap_or(usize::MAX);
        let (heap, open_calls) = (Arc::clone(&upkeep.heap), OpenCallLimit::leak(max_calls));
        Ok(Self { timer, heap, open_calls, launcher })
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
