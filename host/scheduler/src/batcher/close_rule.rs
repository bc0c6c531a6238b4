//! When a batch is closed: the rule of the dynamic batcher and of the sequence batcher's oldest
//! strategy.
//!
//! A scan offers the queued requests in order. [`PendingBatch`] keeps sums only, so that a later
//! scan continues where this one stopped.
//!
//! Instances may be prepared for some sizes only, and pad a batch to the next of them. A batch waits
//! for more rows as long as its delay allows. Then it is executed as it is, padded, or without its
//! last requests, if two runs of smaller sizes take less time than the padded one.

use super::CloseReason;
use super::settings::{BatchingSettings, PreparedSize};

/// [`BatchingSettings`] in the form that a scan reads.
#[derive(Clone, Debug)]
pub struct CloseRule {
    max_rows: u64,
    /// Ascending, none above `max_rows`, never empty.
    preferred: Vec<u64>,
    delay_ns: u64,
    /// Ascending; empty: every size takes the time of its rows.
    prepared: Vec<PreparedSize>,
}

impl CloseRule {
    pub fn new(batching: &BatchingSettings) -> Self {
        let max_rows = u64::from(batching.max_rows.max(1));
        let mut preferred: Vec<u64> = batching.preferred.iter().map(|&size| size.into()).collect();
        preferred.retain(|size| (1..=max_rows).contains(size));
        preferred.sort_unstable();
        if preferred.is_empty() {
            preferred.push(max_rows);
        }
        Self { max_rows, preferred, delay_ns: batching.delay_ns, prepared: Vec::new() }
    }

    /// The sizes that the instances are prepared for.
    pub fn set_prepared(&mut self, mut sizes: Vec<PreparedSize>) {
        sizes.sort_unstable_by_key(|size| size.rows);
        self.prepared = sizes;
    }

    /// Time of a run of this many rows, padded; `None` if it is not known.
    fn run_time(&self, rows: u64) -> Option<u64> {
        let at = self.prepared.partition_point(|size| u64::from(size.rows) < rows);
        self.prepared.get(at).map(|size| size.run_ns).filter(|&time| time != 0)
    }

    fn is_prepared(&self, rows: u64) -> bool {
        self.prepared.binary_search_by_key(&rows, |size| size.rows.into()).is_ok()
    }

    /// Batches are closed without delay from now on.
    pub fn disable_delay(&mut self) {
        self.delay_ns = 0;
    }

    pub fn has_delay(&self) -> bool {
        self.delay_ns != 0
    }

    /// The delay of a request has passed: it is executed now, with all pending ones.
    pub fn delay_expired(&self, enqueued: u64, now: u64) -> bool {
        self.delay_ns == 0 || now >= self.delay_end(enqueued)
    }

    fn delay_end(&self, enqueued: u64) -> u64 {
        enqueued.saturating_add(self.delay_ns)
    }

    fn largest(&self) -> u64 {
        self.preferred.last().copied().unwrap_or(self.max_rows)
    }
}

/// Sums over the requests scanned so far, which fit one batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct PendingBatch {
    rows: u64,
    count: usize,
    /// Enqueue time of the oldest, which is not always the first where there are levels.
    oldest: u64,
    best: Option<BestBatch>,
    /// The largest part that needs no padding.
    unpadded: Option<UnpaddedPart>,
    stop: Option<PendingStop>,
}

/// The largest part of the pending requests that is executed without delay.
#[derive(Clone, Copy, Debug)]
struct BestBatch {
    rows: u64,
    count: usize,
    /// It has a preferred size; else the next request would have exceeded the largest one.
    hit: bool,
}

/// The first pending requests, with exactly the rows of a prepared size.
#[derive(Clone, Copy, Debug)]
struct UnpaddedPart {
    rows: u64,
    count: usize,
}

/// Why the next request is not pending.
#[derive(Clone, Copy, Debug)]
struct PendingStop {
    closed: CloseReason,
    /// It would also have exceeded the largest preferred size, with no preferred size reached
    /// before.
    exceeds: bool,
}

/// The decision about the pending requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseDecision {
    /// Execute this many.
    Take(usize, CloseReason),
    /// Decide again at this time; `None`: nothing is pending.
    Wait(Option<u64>),
}

impl PendingBatch {
    /// False when another request cannot change the verdict at `now`. `in_order`: requests are
    /// scanned by age.
    pub fn wants_more(&self, rule: &CloseRule, now: u64, in_order: bool) -> bool {
        if self.stop.is_some() || self.rows >= rule.max_rows {
            return false;
        }
        // At the largest preferred size the best part is known. Further requests count only once
        // the delay of one has passed, since all pending ones are executed then.
        self.rows < rule.largest()
            || rule.delay_ns != 0 && (!in_order || rule.delay_expired(self.oldest, now))
    }

    /// Offers the next request. True: it is pending now. False: the scan ends before it.
    /// `compatible` compares it with the first request and is not called for that one.
    pub fn offer(
        &mut self,
        rule: &CloseRule,
        rows: u32,
        enqueued: u64,
        compatible: impl FnOnce() -> bool,
    ) -> bool {
        let sum = self.rows + u64::from(rows);
        if self.count == 0 {
            self.oldest = enqueued;
        } else {
            let exceeds = self.best.is_none() && sum > rule.largest();
            if sum > rule.max_rows {
                self.stop = Some(PendingStop { closed: CloseReason::Full, exceeds });
                return false;
            }
            if !compatible() {
                self.stop = Some(PendingStop { closed: CloseReason::Shape, exceeds });
                return false;
            }
            if exceeds {
                self.best = Some(BestBatch { rows: self.rows, count: self.count, hit: false });
            }
        }
        self.rows = sum;
        self.count += 1;
        self.oldest = self.oldest.min(enqueued);
        if rule.preferred.binary_search(&sum).is_ok() {
            self.best = Some(BestBatch { rows: sum, count: self.count, hit: true });
        }
        if rule.is_prepared(sum) {
            self.unpadded = Some(UnpaddedPart { rows: sum, count: self.count });
        }
        true
    }

    /// The request that ended the scan no longer follows the pending ones.
    pub fn reopen(&mut self) {
        self.stop = None;
    }

    /// For the end of a scan: no request is left, or `wants_more` or `offer` returned false.
    pub fn verdict(&self, rule: &CloseRule, now: u64) -> CloseDecision {
        if self.count == 0 {
            return CloseDecision::Wait(None);
        }
        let late = rule.delay_ns != 0 && rule.delay_expired(self.oldest, now);
        if let (Some(best), false) = (self.best, late) {
            let closed = match best {
                BestBatch { count: 1, rows, .. } if rows >= rule.largest() => CloseReason::Alone,
                // Configurations without sizes are normalised to the maximum.
                BestBatch { hit: true, rows, .. } if rows < rule.max_rows => CloseReason::Preferred,
                _ => CloseReason::Full,
            };
            return CloseDecision::Take(best.count, closed);
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
            return CloseDecision::Wait(Some(rule.delay_end(self.oldest)));
        };
        match self.cheaper_part(rule) {
            Some(count) => CloseDecision::Take(count, CloseReason::Preferred),
            None => CloseDecision::Take(self.count, closed),
        }
    }

    /// For the end of a scan: the batch is closed by its size, or by the request behind it.
    pub fn is_complete(&self, rule: &CloseRule) -> bool {
        self.best.is_some() || self.stop.is_some() || self.rows >= rule.largest()
    }

    /// The part without padding, if one run of it and one of the other pending requests take less
    /// time than one run of all.
    fn cheaper_part(&self, rule: &CloseRule) -> Option<usize> {
        let part = self.unpadded.filter(|part| part.count < self.count)?;
        let whole = rule.run_time(self.rows)?;
        let parts = rule.run_time(part.rows)?.saturating_add(rule.run_time(self.rows - part.rows)?);
        (parts < whole).then_some(part.count)
    }
}

#[cfg(test)]
#[path = "close_rule_tests.rs"]
mod tests;
