//! Placed memory that another process can open, too: a region of client shared memory.

use parking_lot::Mutex;
use std::os::fd::BorrowedFd;
use std::sync::Weak;

/// A region, as another process opens it.
#[derive(Clone, Copy)]
pub struct SharedRegion<'a> {
    /// Identifies the region among all that the registry ever had; 0: it is in none.
    pub number: u64,
    /// Name of the region for messages.
    pub name: &'a str,
    pub source: RegionSource<'a>,
    pub observers: &'a RegionObservers,
}

/// What the memory of a region is a part of.
#[derive(Clone, Copy)]
pub enum RegionSource<'a> {
    /// A file, from `offset`; `key` is its name.
    File { file: BorrowedFd<'a>, offset: u64, key: &'a str },
    /// GPU memory of a client, from its beginning, by CUDA IPC handle.
    Cuda { handle: &'a [u8; 64] },
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
