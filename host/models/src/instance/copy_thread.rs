//! The copy thread of an instance on a GPU: it takes the batch that arrives while the instance's own
//! thread waits inside the backend, begins the copies of its inputs, and hands it over.
//!
//! It sleeps in the queue. The own thread waits for it only if it has taken a batch.

use super::worker::PanicGuard;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use trtserver_base::error::Error;
use trtserver_request::InferRequest;
use trtserver_scheduler::{RequestBatch, RequestQueue};

/// Whose copy thread it is.
#[derive(Clone)]
pub(super) struct CopyingInstance {
    pub queue: Arc<RequestQueue>,
    pub ordinal: usize,
    pub model: Arc<str>,
}

/// The copy thread's end of the one-place channel for batches, with their copies `C`.
pub(super) struct BatchCopier<C> {
    instance: CopyingInstance,
    copied: SyncSender<(RequestBatch, C)>,
}

/// The own thread's end. Dropped, it ends the copy thread.
pub(super) struct CopiedBatches<C> {
    instance: CopyingInstance,
    copied: Receiver<(RequestBatch, C)>,
}

impl CopyingInstance {
    pub(super) fn channel<C: Default>(self) -> (BatchCopier<C>, CopiedBatches<C>) {
        let (sender, receiver) = sync_channel(1);
        let copier = BatchCopier { instance: self.clone(), copied: sender };
        (copier, CopiedBatches { instance: self, copied: receiver })
    }

    fn fail(&self, requests: &mut Vec<InferRequest>, what: &str) {
        let text = format!("model '{}': {what}; see the log of the server", self.model);
        for request in requests.drain(..) {
            let _ = request.responder.finish(Err(Error::internal(&*text)));
        }
    }
}

impl<C: Default> BatchCopier<C> {
    /// Takes batches and begins their copies, until [`CopiedBatches`] is dropped. `copy` removes the
    /// requests that it fails.
    pub(super) fn run(self, copy: impl Fn(&mut Vec<InferRequest>) -> C) {
        let Self { instance, copied } = self;
        let _guard = PanicGuard(Arc::clone(&instance.queue));
        let mut batch = RequestBatch::default();
        while instance.queue.take_standby(instance.ordinal, &mut batch) {
            let copies = catch_unwind(AssertUnwindSafe(|| copy(&mut batch.requests)));
            let copies = copies.unwrap_or_else(|_| {
                tracing::error!("model '{}': the copy of inputs panicked", instance.model);
                instance.fail(&mut batch.requests, "the copy of the inputs panicked");
                C::default()
            });
            // Without requests too, since the own thread waits for it.
            if let Err(SendError((mut lost, _))) = copied.send((mem::take(&mut batch), copies)) {
                instance.fail(&mut lost.requests, "its instance has ended");
            }
        }
    }
}

impl<C> CopiedBatches<C> {
    /// The instance has executed: the batch that the copy thread took meanwhile, which comes next.
    pub(super) fn end_standby(&self) -> Option<(RequestBatch, C)> {
        let CopyingInstance { queue, ordinal, .. } = &self.instance;
        // An error: the copy thread has panicked, and the queue is out of service.
        if queue.end_standby(*ordinal) { self.copied.recv().ok() } else { None }
    }
}

impl<C> Drop for CopiedBatches<C> {
    fn drop(&mut self) {
        // There is one only if the own thread panics.
        if let Some((mut batch, _)) = self.end_standby() {
            self.instance.fail(&mut batch.requests, "its instance has ended by a panic");
        }
        self.instance.queue.stop_standby(self.instance.ordinal);
    }
}

#[cfg(test)]
#[path = "copy_thread_tests.rs"]
mod tests;
