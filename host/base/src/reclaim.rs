//! Frees large memory on a thread of its own. Unmapping 64 MiB takes milliseconds, in which a network thread would serve no
//! connection, and holds a lock of the address space that every other mapping of the process waits for.

use crate::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::thread;

/// Smaller memory is freed where it is dropped.
pub const MIN_SIZE: usize = 256 << 10;
/// Added to the thread's niceness: a network thread that wakes up is scheduled first.
const NICE: i32 = 5;

type Garbage = Box<dyn Send>;

struct Queue {
    garbage: Mutex<VecDeque<Garbage>>,
    not_empty: Condvar,
}

static QUEUE: OnceLock<&'static Queue> = OnceLock::new();

/// Starts the thread. Without it [`later`] drops at once.
///
/// # Errors
/// The system starts no threads.
pub fn start() -> std::io::Result<()> {
    let queue: &'static Queue = Box::leak(Box::new(Queue {
        garbage: Mutex::new(VecDeque::new()),
        not_empty: Condvar::new(),
    }));
    thread::Builder::new().name("reclaim".to_owned()).spawn(|| queue.work())?;
    // Unit tests may start it more than once: the first one is used.
    let _ = QUEUE.set(queue);
    Ok(())
}

/// Drops `garbage` on the thread for it. What pays for the memory, a reservation, is dropped with it, so that the memory budget
/// includes memory that waits here.
pub fn later(garbage: impl Send + 'static) {
    if let Some(queue) = QUEUE.get() {
        queue.garbage.lock().push_back(Box::new(garbage));
        queue.not_empty.notify_one();
    }
}

impl Queue {
    fn work(&self) {
        // Refused only if a limit forbids it; the thread then competes as an equal.
        let _ = rustix::process::nice(NICE);
        loop {
            let mut garbage = self.garbage.lock();
            let next = loop {
                match garbage.pop_front() {
                    Some(next) => break next,
                    None => garbage = self.not_empty.wait(garbage),
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
