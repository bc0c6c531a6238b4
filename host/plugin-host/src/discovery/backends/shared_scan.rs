//! One scan at a time, which all threads share that ask for it before it begins: loads of many
//! models ask at once.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub struct SharedScan {
    /// Held during a scan, which may open libraries.
    lock: Mutex<()>,
    begun: AtomicU64,
}

impl SharedScan {
    /// Number of the latest scan.
    pub fn latest(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Returns when a scan has ended that began after this call: `scan`, or that of another thread.
    pub fn run(&self, scan: impl FnOnce()) {
        let begun = self.begun.load(Ordering::Acquire);
        let _one = self.lock.lock();
        if self.begun.load(Ordering::Acquire) != begun {
            // While this thread waited for another scan, a further one has begun and ended.
            return;
        }
        self.begun.fetch_add(1, Ordering::AcqRel);
        scan();
    }
}

#[cfg(test)]
#[path = "shared_scan_tests.rs"]
mod tests;
