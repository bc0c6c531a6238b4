//! When a busy network thread yields its processor: p99 of a saturated server is 0.5 to 0.6 ms, and
//! 2.7 to 3.3 ms without (benches/history/2026-11.md, "The p99 of a saturated server"; promise 2.5 of
//! SPECIFICATION.md).
//!
//! A thread that never sleeps keeps its processor for a whole time slice (4 ms at 250 Hz) while
//! requests of another network thread, or the client on the same machine, wait. Yielding between
//! polls shortens that wait to a fraction of a millisecond. A thread that computes does not yield
//! in return: if it gets the processor, the network thread loses a whole slice. The time that may
//! be lost in this way is limited.

use std::cell::Cell;
use trtserver_base::clock::now_ns;

/// Polls of connections without sleep before a yield: with small requests 0.1 to 0.2 ms.
const POLLS: u32 = 16;
/// A yield that takes longer than this counts as lost time.
const LONG_NS: u64 = 1_000_000;
/// One part in this many of the time may be lost.
const LOST_SHARE: u64 = 20;
/// Most time that may be lost in a row.
const MAX_CREDIT_NS: i64 = 20_000_000;

/// The decision, for one thread.
#[derive(Clone, Copy, Debug)]
struct Yields {
    polls: u32,
    /// Time that may still be lost; grows with time up to `MAX_CREDIT_NS`.
    credit_ns: i64,
    /// When `credit_ns` was last brought up to date.
    since_ns: u64,
}

impl Yields {
    const fn new() -> Self {
        Self { polls: 0, credit_ns: MAX_CREDIT_NS, since_ns: 0 }
    }

    /// Counts a poll; true when it is time to look at the clock for a yield.
    fn count(&mut self) -> bool {
        self.polls += 1;
        if self.polls < POLLS {
            return false;
        }
        self.polls = 0;
        true
    }

    fn is_due(&mut self, now_ns: u64) -> bool {
        let earned = now_ns.saturating_sub(self.since_ns) / LOST_SHARE;
        let earned = i64::try_from(earned).unwrap_or(MAX_CREDIT_NS);
        self.credit_ns = self.credit_ns.saturating_add(earned).min(MAX_CREDIT_NS);
        self.since_ns = now_ns;
        self.credit_ns > 0
    }

    /// A yield took this long.
    fn took(&mut self, ns: u64) {
        if ns > LONG_NS {
            self.credit_ns = self.credit_ns.saturating_sub_unsigned(ns);
        }
    }
}

thread_local! {
    /// `None` on threads that are not network threads.
    static YIELDS: Cell<Option<Yields>> = const { Cell::new(None) };
}

/// Makes this thread yield.
pub fn register_thread() {
    YIELDS.set(Some(Yields::new()));
}

/// To be called before a connection is polled, without locks.
pub fn before_poll() {
    let Some(mut yields) = YIELDS.get() else { return };
    if yields.count() {
        let begin = now_ns();
        if yields.is_due(begin) {
            std::thread::yield_now();
            yields.took(now_ns().saturating_sub(begin));
        }
    }
    YIELDS.set(Some(yields));
}

/// The thread is about to sleep.
pub fn before_sleep() {
    YIELDS.set(YIELDS.get().map(|yields| Yields { polls: 0, ..yields }));
}

#[cfg(test)]
#[path = "yields_tests.rs"]
mod tests;
