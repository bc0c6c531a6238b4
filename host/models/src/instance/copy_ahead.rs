//! `optimization.eager_batching` of an instance on a GPU: the inputs of the next batch are copied to
//! the device while the thread of the instance waits for the present run.
//!
//! The thread takes the next batch, if it is ready and no other instance could begin it, just before
//! it executes the present one, and queues the copies on the stream for copies. If there is none, the
//! copy thread of the instance does so when one arrives during the run. The time of these copies does
//! not count as `compute_input` but as a part of the queue's.

use super::copy_thread::{BatchCopier, CopiedBatches, CopyingInstance};
use super::worker::InstanceWorker;
use super::worker_batches::BatchContext;
use std::mem;
use std::sync::Arc;
use std::thread;
use trtserver_plugin_host::batch::gpu::{GpuInstance, InputCopies};
use trtserver_plugin_host::model::BackendInstance;
use trtserver_request::InferRequest;
use trtserver_scheduler::RequestBatch;

impl InstanceWorker {
    /// The GPU to which this instance copies ahead; logs why not, if it is asked to.
    pub(super) fn copies_ahead(&self, instance: &BackendInstance) -> Option<Arc<GpuInstance>> {
        if !self.eager {
            return None;
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
                Some(gpu) => return Some(Arc::clone(gpu)),
            },
        };
        tracing::warn!(
            "model '{}' instance {}: 'optimization.eager_batching' has no effect: {why}",
            self.signature.model,
            self.plan.name
        );
        None
    }

    /// Serves until the queue is closed and empty or the instance is retired. A batch that was taken
    /// by then is executed; if the device is lost, it fails with that reason.
    pub(super) fn serve_copying_ahead(
        &self,
        instance: &mut BackendInstance,
        gpu: &GpuInstance,
        context: &mut BatchContext,
    ) {
        let (signature, align) = (&*self.signature, self.model.backend.facts.align);
        let copy = |requests: &mut Vec<InferRequest>| gpu.copy_inputs(requests, signature, align);
        let copying = CopyingInstance {
            queue: Arc::clone(&self.queue),
            ordinal: self.ordinal,
            model: Arc::clone(&self.signature.model),
        };
        thread::scope(|scope| {
            let (copier, copied): (BatchCopier<InputCopies>, _) = copying.channel();
            // It inherits niceness and cores of this thread.
            let thread = thread::Builder::new()
                .name(format!("copy {}", self.thread_name()))
                .spawn_scoped(scope, || copier.run(copy));
            match thread {
                Ok(thread) => {
                    self.serve_batches(instance, context, &copy, Some(&copied));
                    drop(copied);
                    // After a panic the queue is out of service.
                    let _ = thread.join();
                }
                Err(e) => {
                    tracing::warn!(
                        "model '{}' instance {}: batches that arrive during a run are not copied ahead, \
                         since no thread starts: {e}",
                        self.signature.model,
                        self.plan.name
                    );
                    self.serve_batches(instance, context, &copy, None);
                }
            }
        });
    }

    fn serve_batches(
        &self,
        instance: &mut BackendInstance,
        context: &mut BatchContext,
        copy: &dyn Fn(&mut Vec<InferRequest>) -> InputCopies,
        arrived: Option<&CopiedBatches<InputCopies>>,
    ) {
        let (mut batch, mut next) = (RequestBatch::default(), RequestBatch::default());
        let mut copied = None;
        while copied.is_some() || self.queue.take(self.ordinal, &mut batch) {
            let mut next_copied = None;
            if self.queue.take_ahead(self.ordinal, &mut next) {
                // First, because the copies of both are in one order.
                copied = copied.or_else(|| Some(copy(&mut batch.requests)));
                next_copied = Some(copy(&mut next.requests));
            }
            context.copied = copied.take();
            context.standby = next_copied.is_none() && arrived.is_some();
            // Empty if no input could be copied.
            if !batch.requests.is_empty() {
                self.run_batch(instance, context, &mut batch, true);
            }
            context.copied = None;
            context.standby = false;
            context.outstanding.wait_at_most(self.max_outstanding(), None);
            if next_copied.is_none()
                && let Some((taken, copies)) = arrived.and_then(CopiedBatches::end_standby)
            {
                (next, next_copied) = (taken, Some(copies));
            }
            if next_copied.is_some() {
                mem::swap(&mut batch, &mut next);
                copied = next_copied;
            }
        }
    }
}
