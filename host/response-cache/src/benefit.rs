//! Whether a cache is worth its cost: a cache whose look-ups take longer than its hits save switches
//! itself off, and tries again later. Decided once for [`WINDOW`] look-ups, earlier if they are costly.
//!
//! A look-up costs the hash of the inputs, a miss also the copy of the response. A hit saves its
//! share of an execution, as executions of misses measure it, and the work of the queue. Two windows
//! in a row must lose before the cache is off; a window on trial must win clearly before it is on
//! again, and each trial that fails doubles the pause before the next.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Look-ups between two decisions.
pub const WINDOW: u64 = 1024;
/// Look-ups after which a decision is due if they took [`COSTLY_NS`] and more than a twentieth of the
/// executions.
const SHORT_WINDOW: u64 = 64;
const COSTLY_NS: u64 = 10_000_000;
/// A look-up or an insertion that takes longer than this, and than two nanoseconds for each byte, was
/// interrupted: the rest of its time is not counted.
const LONGEST_NS: u64 = 20_000;
/// Windows in a row that lose before the cache is switched off.
const LOSING_WINDOWS: u32 = 2;
/// Nanoseconds of a thread that queueing and batching a request take.
const QUEUE_NS: u64 = 1000;
const FIRST_PAUSE_NS: u64 = 10_000_000_000;
const LONGEST_PAUSE_NS: u64 = 320_000_000_000;
/// Requests that pass a cache that is off between two looks at the clock.
const PASSES: u64 = 256;

/// Whether requests are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    On,
    /// Look-ups cost more than hits save: requests are not looked up for a while.
    Off,
    /// Requests are looked up to find out whether it should be on again.
    Trial,
}

impl CacheState {
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Trial => "trial",
        }
    }
}

/// What was measured in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSums {
    pub hits: u64,
    /// Look-ups and insertions.
    pub cost_ns: u64,
    pub executions: u64,
    pub execution_ns: u64,
}

/// Decides at the end of each window.
#[derive(Debug)]
pub struct BenefitJudge {
    state: CacheState,
    losing: u32,
    pause_ns: u64,
    /// When a cache that is off is tried again.
    until_ns: u64,
    /// Nanoseconds that the last executions took.
    execution_ns: u64,
}

impl Default for BenefitJudge {
    fn default() -> Self {
        let (state, pause_ns) = (CacheState::On, FIRST_PAUSE_NS);
        Self { state, losing: 0, pause_ns, until_ns: 0, execution_ns: 0 }
    }
}

impl BenefitJudge {
    pub fn state(&self) -> CacheState {
        self.state
    }

    /// What a window of these sums saved.
    fn saved_ns(&mut self, sums: &WindowSums) -> u64 {
        if let Some(mean) = sums.execution_ns.checked_div(sums.executions) {
            self.execution_ns = mean;
        }
        sums.hits.saturating_mul(self.execution_ns.saturating_add(QUEUE_NS))
    }

    /// A window ended at `now_ns`. Returns the state from now on.
    pub fn window_ended(&mut self, sums: WindowSums, now_ns: u64) -> CacheState {
        let saved = self.saved_ns(&sums);
        match self.state {
            CacheState::Off => {}
            CacheState::On if saved >= sums.cost_ns => self.losing = 0,
            CacheState::On => {
                self.losing += 1;
                if self.losing >= LOSING_WINDOWS {
                    self.pause(FIRST_PAUSE_NS, now_ns);
                }
            }
            CacheState::Trial if saved > sums.cost_ns.saturating_mul(2) => {
                self.state = CacheState::On;
                self.losing = 0;
            }
            CacheState::Trial => {
                self.pause(self.pause_ns.saturating_mul(2).min(LONGEST_PAUSE_NS), now_ns);
            }
        }
        self.state
    }

    fn pause(&mut self, pause_ns: u64, now_ns: u64) {
        self.state = CacheState::Off;
        self.pause_ns = pause_ns;
        self.until_ns = now_ns.saturating_add(pause_ns);
    }

    /// Begins a trial if the pause is over.
    pub fn try_again(&mut self, now_ns: u64) -> CacheState {
        if self.state == CacheState::Off && now_ns >= self.until_ns {
            self.state = CacheState::Trial;
        }
        self.state
    }
}

/// The measurements of one version, which all threads add to.
#[derive(Default)]
pub struct CacheBenefit {
    off: AtomicBool,
    /// Requests that were not looked up.
    passed: AtomicU64,
    lookups: AtomicU64,
    hits: AtomicU64,
    cost_ns: AtomicU64,
    executions: AtomicU64,
    execution_ns: AtomicU64,
    switched_off: AtomicU64,
    judge: Mutex<BenefitJudge>,
}

impl CacheBenefit {
    /// Whether a request is looked up. `now` is asked now and then.
    pub fn is_on(&self, now: impl FnOnce() -> u64) -> bool {
        if !self.off.load(Ordering::Relaxed) {
            return true;
        }
        let passed = self.passed.fetch_add(1, Ordering::Relaxed) + 1;
        if !passed.is_multiple_of(PASSES) {
            return false;
        }
        let state = self.judge.lock().try_again(now());
        self.off.store(state == CacheState::Off, Ordering::Relaxed);
        state != CacheState::Off
    }

    /// A request with inputs of `bytes` was looked up for `ns`. Returns true if the cache was switched
    /// off now for the first time.
    pub fn looked_up(&self, ns: u64, bytes: usize, now_ns: u64) -> bool {
        self.cost_ns.fetch_add(counted(ns, bytes), Ordering::Relaxed);
        let lookups = self.lookups.fetch_add(1, Ordering::Relaxed) + 1;
        let due = lookups.is_multiple_of(WINDOW)
            || (lookups.is_multiple_of(SHORT_WINDOW) && self.is_costly());
        due && self.end_window(now_ns)
    }

    fn is_costly(&self) -> bool {
        let cost_ns = self.cost_ns.load(Ordering::Relaxed);
        cost_ns >= COSTLY_NS && cost_ns > self.execution_ns.load(Ordering::Relaxed) / 20
    }

    fn end_window(&self, now_ns: u64) -> bool {
        let take = |sum: &AtomicU64| sum.swap(0, Ordering::Relaxed);
        let sums = WindowSums {
            hits: take(&self.hits),
            cost_ns: take(&self.cost_ns),
            executions: take(&self.executions),
            execution_ns: take(&self.execution_ns),
        };
        let mut judge = self.judge.lock();
        let before = judge.state();
        let off = judge.window_ended(sums, now_ns) == CacheState::Off;
        self.off.store(off, Ordering::Relaxed);
        let switched = off && before == CacheState::On;
        switched && self.switched_off.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// A request was answered without an execution of its own.
    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// The share of a request in its execution.
    pub fn executed(&self, ns: u64) {
        self.executions.fetch_add(1, Ordering::Relaxed);
        self.execution_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// A response of `bytes` was inserted in `ns`.
    pub fn inserted(&self, ns: u64, bytes: usize) {
        self.cost_ns.fetch_add(counted(ns, bytes), Ordering::Relaxed);
    }

    pub fn state(&self) -> CacheState {
        self.judge.lock().state()
    }

    /// Requests are not looked up now.
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// How often it was switched off; failed trials do not count.
    pub fn switched_off(&self) -> u64 {
        self.switched_off.load(Ordering::Relaxed)
    }

    /// Requests that were not looked up because it was off.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }
}

/// What counts of the time for `bytes`.
fn counted(ns: u64, bytes: usize) -> u64 {
    ns.min(LONGEST_NS.saturating_add(2 * bytes as u64))
}

#[cfg(test)]
#[path = "benefit_tests.rs"]
mod tests;
