//! Calls back when events are reached: one thread per GPU instance sleeps on its next event.
//!
//! Host functions of the driver (`cuLaunchHostFunc`) would need no thread, but the driver drops
//! them when a device is lost, and the requests behind them would never be answered. PendingEvent
//! for an event returns an error then.

use super::context::CudaContext;
use super::event::CudaEvent;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use trtserver_base::error::{Error, Result};

/// Called with an error when the device was lost before the event.
pub type Callback = Box<dyn FnOnce(Result<()>) + Send>;

struct PendingEvent {
    event: CudaEvent,
    callback: Callback,
}

/// The thread's queue. Dropping it ends the thread after the last callback.
pub struct CompletionThread {
    sender: Sender<PendingEvent>,
}

impl CompletionThread {
    /// # Errors
    /// The system starts no further thread.
    pub(super) fn start(context: &'static CudaContext) -> Result<Self> {
        let (sender, receiver) = channel();
        let name = format!("gpu{}-completion", context.ordinal);
        std::thread::Builder::new()
            .name(name)
            .spawn(move || run_completions(context, &receiver))
            .map_err(|e| Error::internal(format!("the completion thread did not start: {e}")))?;
        Ok(Self { sender })
    }

    /// Calls `callback` on the thread once `event` is reached, after those of all earlier calls.
    pub fn after(&self, event: CudaEvent, callback: Callback) {
        if let Err(refused) = self.sender.send(PendingEvent { event, callback }) {
            // Not reached: the thread ends with the sender.
            (refused.0.callback)(Err(Error::internal("the completion thread has ended")));
        }
    }
}

fn run_completions(context: &'static CudaContext, receiver: &Receiver<PendingEvent>) {
    // Saves a push and a pop for each event. A lost device gives its errors below.
    let _ = context.bind_to_thread();
    while let Ok(PendingEvent { event, callback }) = receiver.recv() {
        let reached = event.synchronize();
        // Free for the work that the callback queues.
        drop(event);
        if catch_unwind(AssertUnwindSafe(|| callback(reached))).is_err() {
            tracing::error!("GPU {}: a completion callback panicked", context.ordinal);
        }
    }
}
