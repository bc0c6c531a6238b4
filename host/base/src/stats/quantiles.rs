//! Quantiles of the durations of the last minute, for the summaries of the metrics page.
//!
//! Durations are counted by their leading bits, so a quantile is exact to 1.6 % of its value. Five
//! slices of 12 seconds are kept; the oldest one is dropped as a whole.

/// Parts of the range between two powers of two, as a power of two.
const PARTS_LOG2: u32 = 5;
/// Longer durations, of more than four hours, count as this power of two.
const MAX_POWER: u32 = 44;
const SLOTS: usize = ((MAX_POWER + 1) << PARTS_LOG2) as usize;

const SLICES: usize = 5;
const SLICE_NS: u64 = 12_000_000_000;

/// Durations of the last minute, counted by size in five slices of 12 seconds.
#[derive(Clone, Debug, Default)]
pub struct RecentDurations {
    slices: [TimeSlice; SLICES],
}

#[derive(Clone, Debug, Default)]
struct TimeSlice {
    /// Number of the slice since the clock began.
    number: u64,
    /// By slot; empty before the first use.
    counts: Vec<u32>,
}

impl RecentDurations {
    pub(super) fn add(&mut self, now_ns: u64, ns: u64) {
        let number = now_ns / SLICE_NS;
        let slice = self.slice(number);
        if slice.number != number || slice.counts.is_empty() {
            *slice = TimeSlice { number, counts: vec![0; SLOTS] };
        }
        slice.counts[slot_index(ns)] += 1;
    }

    fn slice(&mut self, number: u64) -> &mut TimeSlice {
        &mut self.slices[number as usize % SLICES]
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for theirs in other.slices.iter().filter(|slice| !slice.counts.is_empty()) {
            let ours = self.slice(theirs.number);
            if ours.counts.is_empty() || ours.number < theirs.number {
                ours.clone_from(theirs);
            } else if ours.number == theirs.number {
                ours.counts.iter_mut().zip(&theirs.counts).for_each(|(a, b)| *a += b);
            }
        }
    }

    /// The durations in nanoseconds at these quantiles, from 0 to 1; NaN without any.
    pub fn quantiles(&self, now_ns: u64, quantiles: &[f64]) -> Vec<f64> {
        let oldest = (now_ns / SLICE_NS).saturating_sub(SLICES as u64 - 1);
        let mut counts = vec![0u64; SLOTS];
        for slice in self.slices.iter().filter(|slice| slice.number >= oldest) {
            counts.iter_mut().zip(&slice.counts).for_each(|(sum, n)| *sum += u64::from(*n));
        }
        let total: u64 = counts.iter().sum();
        let at = |quantile: &f64| {
            let rank = ((quantile * total as f64).ceil() as u64).clamp(1, total.max(1));
            let mut below = 0;
            let slot = counts.iter().position(|count| {
                below += count;
                below >= rank
            });
            slot.map_or(f64::NAN, slot_middle)
        };
        quantiles.iter().map(at).collect()
    }
}

fn slot_index(ns: u64) -> usize {
    let ns = ns.min((2 << MAX_POWER) - 1);
    match ns.checked_ilog2() {
        Some(power) if power >= PARTS_LOG2 => {
            let part = (ns >> (power - PARTS_LOG2)) & ((1 << PARTS_LOG2) - 1);
            ((power as usize) << PARTS_LOG2) | part as usize
        }
        // Shorter durations have slots of their own, at the beginning.
        _ => ns as usize,
    }
}

/// The duration in the middle of a slot.
fn slot_middle(slot: usize) -> f64 {
    let parts = 1 << PARTS_LOG2;
    if slot < parts {
        return slot as f64;
    }
    let width = f64::from((slot >> PARTS_LOG2) as u32 - PARTS_LOG2).exp2();
    ((slot & (parts - 1)) | parts) as f64 * width + (width - 1.0) / 2.0
}

#[cfg(test)]
#[path = "quantiles_tests.rs"]
mod tests;
