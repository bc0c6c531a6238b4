//! Execution of an instance on any thread: on the one that brings a request, or on the instance's
//! own.

use super::worker::InstanceWorker;
use super::worker_batches::BatchContext;
use trtserver_plugin_host::AnyThread;
use trtserver_plugin_host::child_processes::IsolatedInstance;
use trtserver_plugin_host::model::BackendInstance;
use trtserver_scheduler::RequestBatch;
use trtserver_scheduler::inline::InstanceExecutor;

/// Batches that are sent to an isolated model ahead of the one that it executes, if it is fast: the
/// process then need not wait for the next one. A batch that was sent is not given to another
/// instance.
const AHEAD: usize = 15;
/// What a fast execution takes at most.
const FAST_NS: u64 = 100_000;

/// An instance that any thread may execute. Fields are dropped in this order, on the instance's own
/// thread.
pub(super) struct InlineExecutor {
    pub instance: AnyThread,
    pub context: BatchContext,
    pub worker: InstanceWorker,
}

impl InlineExecutor {
    /// Executions that may be outstanding when the next one begins.
    fn max_outstanding(&self) -> usize {
        if self.sends_ahead() { AHEAD } else { self.worker.max_outstanding() }
    }

    fn sends_ahead(&self) -> bool {
        let worker = &self.worker;
        self.instance.isolated().is_some_and(|remote| {
            worker.queue.is_independent()
                && !worker.one_at_a_time
                && worker.limit.is_none()
                && worker.queue.instances() == 1
                && (1..FAST_NS).contains(&remote.execution_ns())
        })
    }
}

impl InstanceExecutor for InlineExecutor {
    fn execute(&mut self, batch: &mut RequestBatch, may_wait: bool) {
        self.worker.run_batch(self.instance.get_mut(), &mut self.context, batch, may_wait);
    }

    fn is_remote(&self) -> bool {
        self.instance.isolated().is_some()
    }

    fn accepts_ahead(&self) -> bool {
        self.sends_ahead() && self.has_capacity()
    }

    fn collect(&mut self, more: bool) -> Option<u64> {
        let remote = self.instance.isolated()?;
        remote.poll(!more);
        Some(remote.execution_ns())
    }

    fn has_capacity(&self) -> bool {
        !self.instance.isolated().is_some_and(IsolatedInstance::has_delayed)
            && self.context.outstanding.at_most(self.max_outstanding())
    }

    fn wait_for_capacity(&mut self) {
        if let BackendInstance::Isolated(remote) = self.instance.get_mut() {
            remote.send_delayed();
        }
        self.context.outstanding.wait_at_most(self.max_outstanding(), None);
    }
}
