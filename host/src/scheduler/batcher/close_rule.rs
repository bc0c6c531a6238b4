//! When a batch is closed: the rule that the dynamic scheduler and the "oldest" strategy of sequences share.
//!
//! A scan offers the waiting requests in order; [`PendingBatch`] keeps sums only, so that the scan can go on later
//! where it stopped instead of beginning again.

use super::CloseReason;
use super::settings::Batching;

/// [`Batching`] in the form that a scan reads.
#[derive(Clone, Debug)]
pub struct CloseRule {
    max_rows: u64,
    /// Ascending, none above `max_rows`, never empty.
    preferred: Vec<u64>,
    delay_ns: u64,
}

impl CloseRule {
    pub fn new(batching: &Batching) -> Self {
        let max_rows = u64::from(batching.max_rows.max(1));
        let mut preferred: Vec<u64> = batching.preferred.iter().map(|&size| size.into()).collect();
        preferred.retain(|size| (1..=max_rows).contains(size));
        preferred.sort_unstable();
        if preferred.is_empty() {
            preferred.push(max_rows);
        }
        Self { max_rows, preferred, delay_ns: batching.delay_ns }
    }

    /// Nothing waits for company any more.
    pub fn disable_delay(&mut self) {
        self.delay_ns = 0;
    }

    /// A request of this age goes now, and with it whatever is pending.
    pub fn delay_expired(&self, enqueued: u64, now: u64) -> bool {
        self.delay_ns == 0 || now >= self.until(enqueued)
    }

    fn until(&self, enqueued: u64) -> u64 {
        enqueued.saturating_add(self.delay_ns)
    }

    fn largest(&self) -> u64 {
        self.preferred.last().copied().unwrap_or(self.max_rows)
    }
}

/// The requests looked at so far that can stand in one batch, in sums.
#[derive(Clone, Copy, Debug, Default)]
pub struct PendingBatch {
    rows: u64,
    count: usize,
    /// Enqueue time of the oldest; with levels that is not always the first.
    oldest: u64,
    best: Option<Best>,
    stop: Option<Stop>,
}

/// The largest part of the pending requests that is worth executing without waiting.
#[derive(Clone, Copy, Debug)]
struct Best {
    rows: u64,
    count: usize,
    /// A preferred size; else the request behind it would have exceeded the largest one.
    hit: bool,
}

/// Why the next request does not join.
#[derive(Clone, Copy, Debug)]
struct Stop {
    closed: CloseReason,
    /// It would also have exceeded the largest preferred size, with no preferred size reached before.
    exceeds: bool,
}

/// What the pending requests come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Execute the first so many.
    Take(usize, CloseReason),
    /// Look again then; `None`: nothing is pending.
    Wait(Option<u64>),
}

impl PendingBatch {
    /// False when looking at another request cannot change the verdict at `now`.
    /// `in_order`: no request waits behind a younger one.
    pub fn wants_more(&self, rule: &CloseRule, now: u64, in_order: bool) -> bool {
        if self.stop.is_some() || self.rows >= rule.max_rows {
            return false;
        }
        // From the largest preferred size on the best is known. What follows counts only once a request is
        // late: then everything goes.
        self.rows < rule.largest()
            || rule.delay_ns != 0 && (!in_order || rule.delay_expired(self.oldest, now))
    }

    /// The next request in order. True: it is pending now. False: the scan ends before it. `joins` compares it with the
    /// first one and is not called for that one.
    pub fn offer(
        &mut self,
        rule: &CloseRule,
        rows: u32,
        enqueued: u64,
        joins: impl FnOnce() -> bool,
    ) -> bool {
        let sum = self.rows + u64::from(rows);
        if self.count == 0 {
            self.oldest = enqueued;
        } else {
            let exceeds = self.best.is_none() && sum > rule.largest();
            if sum > rule.max_rows {
                self.stop = Some(Stop { closed: CloseReason::Full, exceeds });
                return false;
            }
            if !joins() {
                self.stop = Some(Stop { closed: CloseReason::Shape, exceeds });
                return false;
            }
            if exceeds {
                self.best = Some(Best { rows: self.rows, count: self.count, hit: false });
            }
        }
        self.rows = sum;
        self.count += 1;
        self.oldest = self.oldest.min(enqueued);
        if rule.preferred.binary_search(&sum).is_ok() {
            self.best = Some(Best { rows: sum, count: self.count, hit: true });
        }
        true
    }

    /// Another request stands behind the pending ones than the one that ended the scan.
    pub fn reopen(&mut self) {
        self.stop = None;
    }

    /// To be asked when nothing is left to offer, or `wants_more` and `offer` end the scan.
    pub fn verdict(&self, rule: &CloseRule, now: u64) -> Verdict {
        if self.count == 0 {
            return Verdict::Wait(None);
        }
        let late = rule.delay_ns != 0 && rule.delay_expired(self.oldest, now);
        if let (Some(best), false) = (self.best, late) {
            let closed = match best {
                Best { count: 1, rows, .. } if rows >= rule.largest() => CloseReason::Alone,
                // Configurations without sizes are normalised to the maximum.
                Best { hit: true, rows, .. } if rows < rule.max_rows => CloseReason::Preferred,
                _ => CloseReason::Full,
            };
            return Verdict::Take(best.count, closed);
        }
        let closed = if self.count == 1 && self.rows >= rule.largest() {
            CloseReason::Alone
        } else if let Some(stop) = self.stop {
            if stop.exceeds && !late { CloseReason::Full } else { stop.closed }
        } else if self.rows >= rule.max_rows {
            CloseReason::Full
        } else if rule.delay_expired(self.oldest, now) {
            CloseReason::Delay
        } else {
            return Verdict::Wait(Some(rule.until(self.oldest)));
        };
        Verdict::Take(self.count, closed)
    }
}

#[cfg(test)]
#[path = "close_rule_tests.rs"]
mod tests;
