//! Calls back when events are reached: one thread per GPU instance sleeps on its next event.
//!
//! Host functions of the driver (`cuLaunchHostFunc`) would need no thread, but the driver drops them when a device is
//! lost, and the requests behind them would never be answered. Waiting for an event returns an error then.

use super::context::Context;
use super::event::Event;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use trtserver_base::error::{Error, Result};

/// Called with an error when the device was lost before the event.
pub type Callback = Box<dyn FnOnce(Result<()>) + Send>;

struct Waiting {
    event: Event,
    callback: Callback,
}

/// The thread's queue. Dropping it ends the thread after the last callback.
pub struct Completions {
    sender: Sender<Waiting>,
}

impl Completions {
    /// # Errors
    /// The system starts no further thread.
    pub(super) fn start(context: &'static Context) -> Result<Self> {
        let (sender, receiver) = channel();
        let name = format!("gpu{}-completion", context.ordinal);
        std::thread::Builder::new()
            .name(name)
            .spawn(move || run(context, &receiver))
            .map_err(|e| Error::internal(format!("the completion thread did not start: {e}")))?;
        Ok(Self { sender })
    }

    /// Calls `callback` on the thread once `event` is reached, after those of all earlier calls.
    pub fn after(&self, event: Event, callback: Callback) {
        if let Err(refused) = self.sender.send(Waiting { event, callback }) {
            // Not reached: the thread ends with the sender.
            (refused.0.callback)(Err(Error::internal("the completion thread has ended")));
        }
    }
}

fn run(context: &'static Context, receiver: &Receiver<Waiting>) {
    // Saves a push and a pop for each event. A lost device gives its errors below.
    let _ = context.bind_to_thread();
    while let Ok(Waiting { event, callback }) = receiver.recv() {
        let reached = event.synchronize();
        // Free for the work that the callback queues.
        drop(event);
        if catch_unwind(AssertUnwindSafe(|| callback(reached))).is_err() {
            tracing::error!("GPU {}: a completion callback panicked", context.ordinal);
        }
    }
}
