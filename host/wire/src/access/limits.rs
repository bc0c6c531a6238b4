//! Limits of a name: requests a second, and at a time.
//!
//! The rate is kept as one number, the time at which the next request is due (GCRA): a request is
//! early by at most a second's worth of requests. A crate would bring clocks, jitter and keyed
//! stores for this one addition.

use super::refusal::AccessRefusal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// What the holders of a name have sent. Outlives changes of the file.
#[derive(Debug, Default)]
pub struct NameUsage {
    in_flight: AtomicU32,
    /// When the next request is due if each comes in its time, in nanoseconds of the server's
    /// clock.
    due_ns: AtomicU64,
}

/// The limits of one name; `None`: no limit.
#[derive(Debug)]
pub struct NameLimits {
    pub rate: Option<u32>,
    pub in_flight: Option<u32>,
    pub usage: Arc<NameUsage>,
}

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub struct InFlightRequest(Arc<NameUsage>);

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

impl NameLimits {
    /// Counts a request of `name` at `now_ns`. `None` without a limit on those in flight.
    ///
    /// # Errors
    /// It exceeds a limit.
    pub fn admit(&self, name: &str, now_ns: u64) -> Result<Option<InFlightRequest>, AccessRefusal> {
        // First: a request that is refused here does not use up the rate.
        let in_flight = match self.in_flight {
            None => None,
            Some(most) => {
                let counted = InFlightRequest(Arc::clone(&self.usage));
                if self.usage.in_flight.fetch_add(1, Relaxed) >= most {
                    drop(counted);
                    return Err(AccessRefusal::TooMany { name: name.to_owned(), in_flight: most });
                }
                Some(counted)
            }
        };
        if let Some(rate) = self.rate {
            self.usage.take_turn(rate, now_ns).map_err(|wait| AccessRefusal::TooFast {
                name: name.to_owned(),
                rate,
                wait,
            })?;
        }
        Ok(in_flight)
    }
}

impl NameUsage {
    /// # Errors
    /// How long to wait.
    fn take_turn(&self, rate: u32, now_ns: u64) -> Result<(), Duration> {
        let interval = SECOND / u64::from(rate.max(1));
        let early = SECOND - interval;
        let mut due = self.due_ns.load(Relaxed);
        loop {
            let wait = due.saturating_sub(now_ns.saturating_add(early));
            if wait > 0 {
                return Err(Duration::from_nanos(wait));
            }
            let next = due.max(now_ns) + interval;
            match self.due_ns.compare_exchange_weak(due, next, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => due = other,
            }
        }
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
