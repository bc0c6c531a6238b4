//! Ends the threads of a test, also when an assertion fails.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when dropped, also by a failed assertion: threads that wait for it end.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
