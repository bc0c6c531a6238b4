//! Inline completion: the right of an instance's thread to encode and send the response to its only
//! request itself.
//!
//! Otherwise it wakes a network thread, which costs a context switch. The instance grants the right
//! while it executes a batch of one request and none waits; the frontend takes it when the response
//! arrives (`wire/src/task.rs`).

use std::cell::Cell;

thread_local! {
    static GRANTED: Cell<bool> = const { Cell::new(false) };
}

/// The time in which the right is granted to this thread.
pub struct InlineCompletion(());

impl InlineCompletion {
    pub fn grant() -> Self {
        GRANTED.set(true);
        Self(())
    }

    /// Takes the right of this thread. False if it has none, or it was taken.
    pub fn take() -> bool {
        GRANTED.replace(false)
    }
}

impl Drop for InlineCompletion {
    fn drop(&mut self) {
        GRANTED.set(false);
    }
}
