//! Breaks off the opening of an isolated model: its child process is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by a load and the threads that wait for its child processes. Set once, for good.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
