//! Frees large memory on a thread of its own. Unmapping 64 MiB takes milliseconds, in which a
//! network thread would serve no connection, and holds a lock of the address space that every other
//! mapping of the process waits for.

use crate::upkeep;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::thread;

/// Smaller memory is freed where it is dropped.
pub const MIN_SIZE: usize = 256 << 10;
/// Added to the thread's niceness: a network thread that wakes up is scheduled first.
const NICE: i32 = 5;

type Garbage = Box<dyn Send>;

/// Memory that waits to be freed.
pub struct ReclaimQueue {
    garbage: Mutex<VecDeque<Garbage>>,
    not_empty: Condvar,
}

/// Drops `garbage` on the thread for it; at once without [`upkeep::start_upkeep`]. What pays for
/// the memory, a reservation, is dropped with it, so that the memory budget includes memory that
/// waits here.
pub fn reclaim_later(garbage: impl Send + 'static) {
    if let Some(upkeep) = upkeep::get_upkeep() {
        upkeep.reclaim.push(garbage);
    }
}

impl ReclaimQueue {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system starts no threads.
    pub fn start() -> std::io::Result<&'static Self> {
        let queue: &'static Self = Box::leak(Box::new(Self {
            garbage: Mutex::new(VecDeque::new()),
            not_empty: Condvar::new(),
        }));
        thread::Builder::new().name("reclaim".to_owned()).spawn(|| queue.work())?;
        Ok(queue)
    }

    fn push(&self, garbage: impl Send + 'static) {
        self.garbage.lock().push_back(Box::new(garbage));
        self.not_empty.notify_one();
    }

    fn work(&self) {
        // Refused only if a limit forbids it; the thread then competes as an equal.
        let _ = rustix::process::nice(NICE);
        loop {
            let mut garbage = self.garbage.lock();
            let next = loop {
                match garbage.pop_front() {
                    Some(next) => break next,
                    None => self.not_empty.wait(&mut garbage),
                }
            };
            drop(garbage);
            drop(next);
        }
    }
}

#[cfg(test)]
#[path = "reclaim_tests.rs"]
mod tests;
