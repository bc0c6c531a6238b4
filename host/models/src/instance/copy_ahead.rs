//! `optimization.eager_batching` of an instance on a GPU: the inputs of the next batch are copied to
//! the device while the thread of the instance waits for the present run.
//!
//! The thread takes the next batch, if it is ready and no other instance could begin it, just before
//! it executes the present one, and queues the copies on the stream for copies. Their time does not
//! count as `compute_input` but as a part of the queue's.

use super::worker::InstanceWorker;
use super::worker_batches::BatchContext;
use std::mem;
use trtserver_plugin_host::batch::gpu::InputCopies;
use trtserver_plugin_host::model::BackendInstance;
use trtserver_scheduler::RequestBatch;

impl InstanceWorker {
    /// Whether this instance copies ahead; logs why not, if it is asked to.
    pub(super) fn copies_ahead(&self, instance: &BackendInstance) -> bool {
        if !self.eager {
            return false;
        }
        let why = match instance {
            _ if self.one_at_a_time => {
                "a batch may contain the next requests of the same sequences"
            }
            _ if self.queue.needs_grants(self.ordinal) => {
                "the rate limiter grants resources for one batch at a time"
            }
            _ if self.decoupled => "its responses are not known when a batch is complete",
            BackendInstance::Isolated(_) => "it is executed by another process",
            BackendInstance::Local(here) => match here.gpu() {
                None => "it is not on a GPU",
                Some(gpu) if !gpu.takes_inputs() => "its backend takes no inputs in GPU memory",
                Some(_) => return true,
            },
        };
        tracing::warn!(
            "model '{}' instance {}: 'optimization.eager_batching' has no effect: {why}",
            self.signature.model,
            self.plan.name
        );
        false
    }

    /// Serves on this thread alone, until the queue is closed and empty or the instance is retired. A
    /// batch that was taken by then is executed; if the device is lost, it fails with that reason.
    pub(super) fn serve_copying_ahead(
        &self,
        instance: &mut BackendInstance,
        context: &mut BatchContext,
    ) {
        let (mut batch, mut next) = (RequestBatch::default(), RequestBatch::default());
        let mut copied = None;
        while copied.is_some() || self.queue.take(self.ordinal, &mut batch) {
            let mut next_copied = None;
            if self.queue.take_ahead(self.ordinal, &mut next) {
                // First, because the copies of both are in one order.
                copied = copied.or_else(|| self.copy_inputs(instance, &mut batch));
                next_copied = self.copy_inputs(instance, &mut next);
            }
            context.copied = copied.take();
            // Empty if no input could be copied.
            if !batch.requests.is_empty() {
                self.run_batch(instance, context, &mut batch, true);
            }
            context.copied = None;
            context.outstanding.wait_at_most(self.max_outstanding(), None);
            if next_copied.is_some() {
                mem::swap(&mut batch, &mut next);
                copied = next_copied;
            }
        }
    }

    fn copy_inputs(
        &self,
        instance: &BackendInstance,
        batch: &mut RequestBatch,
    ) -> Option<InputCopies> {
        match instance {
            BackendInstance::Local(here) => self.runner().copy_inputs(here, &mut batch.requests),
            BackendInstance::Isolated(_) => None,
        }
    }
}
