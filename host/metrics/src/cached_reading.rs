//! Values that are read at most once per interval, however many clients scrape.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

pub struct CachedReading<T> {
    interval: Duration,
    last: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> CachedReading<T> {
    pub const fn new(interval: Duration) -> Self {
        Self { interval, last: Mutex::new(None) }
    }

    /// The last value, or a new one if that is older than the interval.
    pub fn get(&self, read: impl FnOnce() -> T) -> T {
        let mut last = self.last.lock();
        match &*last {
            Some((at, value)) if at.elapsed() < self.interval => value.clone(),
            _ => {
                let value = read();
                *last = Some((Instant::now(), value.clone()));
                value
            }
        }
    }
}
