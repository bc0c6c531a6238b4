//! Placed memory that is a part of a file, which another process can map, too: a region of client shared memory.

use crate::sync::Mutex;
use std::os::fd::BorrowedFd;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

/// The file of a region.
#[derive(Clone, Copy)]
pub struct MappedFile<'a> {
    /// Identifies the region in this process; see [`next_number`].
    pub number: u64,
    pub file: BorrowedFd<'a>,
    /// Where the region begins in the file.
    pub offset: u64,
    /// Names of the region and of the file, for messages.
    pub name: &'a str,
    pub key: &'a str,
    pub observers: &'a RegionObservers,
}

/// A number that no region of this process had before; never 0.
pub fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Is notified when a region has lost its last user.
pub trait RegionObserver: Send + Sync {
    /// Must not block. Called by the thread that drops the region.
    fn region_dropped(&self, number: u64);
}

/// The observers of one region.
#[derive(Default)]
pub struct RegionObservers(Mutex<Vec<Weak<dyn RegionObserver>>>);

impl RegionObservers {
    pub fn add(&self, observer: Weak<dyn RegionObserver>) {
        let mut observers = self.0.lock();
        observers.retain(|known| known.strong_count() > 0);
        observers.push(observer);
    }

    /// Called when the region is dropped.
    pub fn notify(&self, number: u64) {
        let observers = std::mem::take(&mut *self.0.lock());
        observers.iter().filter_map(Weak::upgrade).for_each(|o| o.region_dropped(number));
    }
}
