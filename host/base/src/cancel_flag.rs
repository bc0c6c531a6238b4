//! Shared by a load and the backends that open its models: whether it is broken off, and how far it
//! is.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by a load, the threads that wait for its child processes, and the scopes of the models
/// that it opens. Cancelled once, for good: child processes are killed, and a backend in this
/// process learns it when it next reports its progress.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    cancelled: AtomicBool,
    /// Stage and per mille of the latest report.
    progress: Mutex<Option<(String, u32)>>,
}

impl CancelFlag {
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// A backend reports how far a load is.
    pub fn report(&self, stage: &str, permille: u32) {
        *self.0.progress.lock() = Some((stage.to_owned(), permille.min(1000)));
    }

    /// The latest report.
    pub fn progress(&self) -> Option<(String, u32)> {
        self.0.progress.lock().clone()
    }
}
