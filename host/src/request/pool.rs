//! Large blocks of memory, kept for a moment after their use and used again: the page faults of fresh memory cost
//! several times what the copy into it does.
//!
//! Blocks come in sizes of four steps to a doubling, so that at most a fifth of one is unused. Free ones are kept up to
//! a bound, the longest unused leave first, and none stays for longer than [`AGE_NS`]: a server at rest keeps nothing, and
//! wakes no thread once the last block is gone. What the system refuses is asked for again when nothing is kept.

use super::pages::Pages;
use crate::clock::now_ns;
use crate::sync::{Mutex, MutexGuard};
use crate::timer::{self, DeadlineCallback};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Weak};

/// Smaller blocks are the allocator's business, which has such memory at hand.
pub const LEAST: usize = 64 << 10;
/// Larger ones are made for one use.
const LARGEST: usize = 128 << 20;
/// Sizes from [`LEAST`] to [`LARGEST`].
const CLASSES: usize = 4 * (LARGEST / LEAST).ilog2() as usize + 1;
/// Bytes of free blocks that are kept, on a large machine.
const MOST: usize = 256 << 20;
/// A free block that nobody takes for so long goes back to the system.
const AGE_NS: u64 = 2_000_000_000;

/// The size class of blocks for `len` bytes; `None` where there is none.
fn class_of(len: usize) -> Option<usize> {
    let len = len.max(LEAST);
    if len > LARGEST {
        return None;
    }
    let doublings = (len / LEAST).ilog2() as usize;
    let step = (LEAST << doublings) / 4;
    Some(4 * doublings + (len - (LEAST << doublings)).div_ceil(step))
}

/// Bytes of a block of this class.
fn size_of_class(class: usize) -> usize {
    (LEAST / 4 * (4 + class % 4)) << (class / 4)
}

/// See the module text.
pub struct Pool {
    kept: Mutex<Kept>,
    bound: usize,
}

struct Kept {
    /// By class; those that were used last at the end, from where they are taken: they are still in the caches.
    free: Vec<VecDeque<Free>>,
    bytes: usize,
    /// [`Pool::trim`] is going to be called.
    alarm: bool,
}

struct Free {
    pages: Pages,
    since_ns: u64,
}

impl Pool {
    /// Keeps at most `bound` bytes, of one class half of it.
    pub fn new(bound: usize) -> Self {
        let free = (0..CLASSES).map(|_| VecDeque::new()).collect();
        Self { kept: Mutex::new(Kept { free, bytes: 0, alarm: false }), bound }
    }

    /// A block with room for `len` bytes, which are whatever its last user left there; `None` when there is not so
    /// much memory.
    pub fn take(&self, len: usize) -> Option<Pages> {
        let class = class_of(len);
        if let Some(free) = class.and_then(|class| self.lock().pop(class)) {
            return Some(free);
        }
        let size = class.map_or(len, size_of_class);
        Pages::map(size).or_else(|| {
            self.trim(u64::MAX);
            Pages::map(size)
        })
    }

    /// Takes a block back. The time at which [`Pool::trim`] wants to be called, if it does not expect that already.
    pub fn put(&self, pages: Pages, now_ns: u64) -> Option<u64> {
        let size = pages.size();
        let class = class_of(size).filter(|_| size <= self.bound / 2)?;
        let mut gone = Vec::new();
        let mut kept = self.lock();
        while (kept.free[class].len() + 1) * size > self.bound / 2 {
            gone.extend(kept.evict(class));
        }
        while kept.bytes + size > self.bound {
            let oldest = (0..CLASSES)
                .filter_map(|class| Some((kept.free[class].front()?.since_ns, class)))
                .min();
            let Some((_, class)) = oldest else { break };
            gone.extend(kept.evict(class));
        }
        kept.bytes += size;
        kept.free[class].push_back(Free { pages, since_ns: now_ns });
        let alarm = !std::mem::replace(&mut kept.alarm, true);
        // The system takes its time: `gone` is dropped after the lock.
        drop(kept);
        alarm.then_some(now_ns.saturating_add(AGE_NS))
    }

    /// Gives blocks that nobody took for [`AGE_NS`] back to the system. The time of the next call, if anything is left.
    pub fn trim(&self, now_ns: u64) -> Option<u64> {
        let mut gone = Vec::new();
        let mut kept = self.lock();
        let mut next = None;
        for class in 0..CLASSES {
            while let Some(first) = kept.free[class].front() {
                let due = first.since_ns.saturating_add(AGE_NS);
                if due > now_ns {
                    next = Some(next.map_or(due, |next: u64| next.min(due)));
                    break;
                }
                gone.extend(kept.evict(class));
            }
        }
        kept.alarm = next.is_some();
        drop(kept);
        next
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock()
    }
}

impl Kept {
    fn pop(&mut self, class: usize) -> Option<Pages> {
        let free = self.free[class].pop_back()?;
        self.bytes -= free.pages.size();
        Some(free.pages)
    }

    /// The block of a class that is unused for longest.
    fn evict(&mut self, class: usize) -> Option<Pages> {
        let free = self.free[class].pop_front()?;
        self.bytes -= free.pages.size();
        Some(free.pages)
    }
}

/// The pool of this process.
static POOL: LazyLock<Arc<Pool>> = LazyLock::new(|| Arc::new(Pool::new(bound())));

/// As [`Pool::take`], from the pool of this process.
pub fn take(len: usize) -> Option<Pages> {
    POOL.take(len)
}

/// As [`Pool::put`], into the pool of this process.
pub fn put(pages: Pages) {
    if let Some(at_ns) = POOL.put(pages, now_ns()) {
        wake_at(at_ns);
    }
}

impl DeadlineCallback for Pool {
    fn on_deadline(&self) {
        if let Some(at_ns) = self.trim(now_ns()) {
            wake_at(at_ns);
        }
    }
}

fn wake_at(at_ns: u64) {
    let pool: Weak<Pool> = Arc::downgrade(&POOL);
    timer::schedule(at_ns, pool);
}

/// An eighth of what this process may use is the most that is kept on a small machine.
fn bound() -> usize {
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    let system = rustix::system::sysinfo();
    let memory = system.totalram as u64 * u64::from(system.mem_unit.max(1));
    // Without a limit the file says "max".
    let memory = group.trim().parse().map_or(memory, |group: u64| group.min(memory));
    usize::try_from(memory / 8).unwrap_or(MOST).min(MOST)
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
