//! What the own threads of a queue's instances sleep on. Instances may be added while others sleep,
//! so nothing moves.

use parking_lot::Condvar;
use std::sync::OnceLock;

type Chunk = OnceLock<Box<[Condvar]>>;

/// One condition variable for each instance, at an address that never changes.
pub(super) struct InstanceThreads {
    first: Box<[Condvar]>,
    /// Condition variables of instances that were added: chunk `n` has 2^`n`.
    added: OnceLock<Box<[Chunk; 32]>>,
}

impl InstanceThreads {
    /// For `instances` instances at first.
    pub(super) fn new(instances: usize) -> Self {
        let first = (0..instances).map(|_| Condvar::new()).collect();
        Self { first, added: OnceLock::new() }
    }

    pub(super) fn condvar_for(&self, instance: usize) -> &Condvar {
        match self.first.get(instance) {
            Some(thread) => thread,
            None => self.added(instance - self.first.len()),
        }
    }

    #[cold]
    fn added(&self, index: usize) -> &Condvar {
        let chunk = (index + 1).ilog2() as usize;
        let size = 1 << chunk;
        let threads = || (0..size).map(|_| Condvar::new()).collect();
        &self.added.get_or_init(Box::default)[chunk].get_or_init(threads)[index + 1 - size]
    }
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
