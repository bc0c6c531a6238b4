//! Histograms of durations, for the metrics page.
//!
//! The bucket of a duration is found without a search: a table leads from the leading bits of the
//! duration to the first bucket that it can be in. Buckets narrower than a quarter of their bound
//! take further steps.

use std::sync::Arc;

/// Parts of the range between two powers of two.
const PARTS_LOG2: u32 = 2;
const SLOTS: usize = 64 << PARTS_LOG2;

/// Most bounds of a histogram: a bucket's number is one byte.
pub const MAX_BOUNDS: usize = 200;

/// The bounds of a histogram.
#[derive(Debug)]
pub struct BucketBounds {
    /// Inclusive upper bounds in the unit of the metric, ascending; +Inf follows.
    shown: Box<[f64]>,
    /// The same in nanoseconds. `u64::MAX` is the last one.
    bounds: Box<[u64]>,
    /// By slot: the first bucket for the shortest duration of the slot.
    first: Box<[u8; SLOTS]>,
}

impl BucketBounds {
    /// Bounds in a unit of `unit_ns` nanoseconds: ascending, at most [`MAX_BOUNDS`].
    pub fn new(bounds: &[f64], unit_ns: f64) -> Self {
        debug_assert!(bounds.len() <= MAX_BOUNDS && bounds.is_sorted());
        let shown: Box<[f64]> = bounds.into();
        let bounds = bounds.iter().map(|bound| (bound * unit_ns) as u64);
        let bounds: Box<[u64]> = bounds.chain([u64::MAX]).collect();
        let mut first = Box::new([0; SLOTS]);
        for (slot, first) in first.iter_mut().enumerate() {
            let shortest = shortest_in_slot(slot);
            *first = bounds.partition_point(|bound| *bound < shortest) as u8;
        }
        Self { shown, bounds, first }
    }

    pub fn bounds(&self) -> &[f64] {
        &self.shown
    }

    fn index(&self, ns: u64) -> usize {
        let mut bucket = usize::from(self.first[slot_index(ns)]);
        while ns > self.bounds[bucket] {
            bucket += 1;
        }
        bucket
    }
}

impl PartialEq for BucketBounds {
    fn eq(&self, other: &Self) -> bool {
        self.bounds == other.bounds
    }
}

/// The power of two and the bits after it.
fn slot_index(ns: u64) -> usize {
    let ns = ns.max(1 << PARTS_LOG2);
    let power = ns.ilog2();
    let part = (ns >> (power - PARTS_LOG2)) as usize & ((1 << PARTS_LOG2) - 1);
    ((power as usize) << PARTS_LOG2) | part
}

/// The shortest duration of a slot.
fn shortest_in_slot(slot: usize) -> u64 {
    let (power, part) = (slot >> PARTS_LOG2, (slot & ((1 << PARTS_LOG2) - 1)) as u64);
    match (power as u32).checked_sub(PARTS_LOG2) {
        // Shorter durations are in the first slot that is used.
        None => 0,
        Some(0) if part == 0 => 0,
        Some(shift) => (part | (1 << PARTS_LOG2)) << shift,
    }
}

/// Durations counted by bucket.
#[derive(Clone, Debug)]
pub struct DurationHistogram {
    buckets: Arc<BucketBounds>,
    /// The last one is +Inf.
    counts: Box<[u64]>,
    sum_ns: u64,
}

impl DurationHistogram {
    pub fn new(buckets: &Arc<BucketBounds>) -> Self {
        let counts = vec![0; buckets.bounds.len()].into();
        Self { buckets: Arc::clone(buckets), counts, sum_ns: 0 }
    }

    pub(super) fn add(&mut self, ns: u64) {
        self.counts[self.buckets.index(ns)] += 1;
        self.sum_ns += ns;
    }

    /// Adds `other`. If the bounds differ, because a load has changed the bounds of the version,
    /// becomes `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.buckets != other.buckets {
            self.clone_from(other);
            return;
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
        self.sum_ns += other.sum_ns;
    }

    /// See [`BucketBounds::bounds`].
    pub fn bounds(&self) -> &[f64] {
        self.buckets.bounds()
    }

    /// Not cumulative, +Inf last.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }
}

#[cfg(test)]
#[path = "histogram_tests.rs"]
mod tests;
