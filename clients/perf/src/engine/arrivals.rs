//! Arrival schedules of an open loop: when each request is due.

use std::sync::Arc;

const NANOS: f64 = 1e9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    Constant,
    Poisson,
}

#[derive(Clone, Debug)]
enum Gaps {
    /// Equal gaps. The time of arrival `n` is computed from `n`, so rounding errors do not add up.
    Constant { per_second: f64 },
    /// Exponential gaps.
    Poisson { per_second: f64, random: Random },
    /// Nanoseconds, repeated from the start when used up.
    Listed(Arc<[u64]>),
}

/// An endless schedule; an iterator over due times in nanoseconds.
#[derive(Clone, Debug)]
pub struct Arrivals {
    gaps: Gaps,
    /// Index of the next arrival, over all threads.
    next: u64,
    /// Due time of the last arrival.
    at: f64,
    /// This thread takes the arrivals whose index is `share` modulo `shares`.
    share: u64,
    shares: u64,
}

impl Arrivals {
    pub fn at_rate(per_second: f64, distribution: Distribution, seed: u64) -> Self {
        Self::new(match distribution {
            Distribution::Constant => Gaps::Constant { per_second },
            Distribution::Poisson => Gaps::Poisson { per_second, random: Random(seed) },
        })
    }

    /// Repeats these gaps, in microseconds.
    pub fn intervals(microseconds: &[u64]) -> Self {
        Self::new(Gaps::Listed(microseconds.iter().map(|us| us.saturating_mul(1000)).collect()))
    }

    fn new(gaps: Gaps) -> Self {
        Arrivals { gaps, next: 0, at: 0.0, share: 0, shares: 1 }
    }

    /// The arrivals of one of several threads.
    pub fn share(mut self, index: usize, count: usize) -> Self {
        (self.share, self.shares) = (index as u64, count as u64);
        self
    }

    /// Due time of the next arrival of any thread. The first is due at once.
    fn step(&mut self) -> u64 {
        let index = self.next;
        self.next += 1;
        if index > 0 {
            match &mut self.gaps {
                Gaps::Constant { per_second } => self.at = index as f64 * NANOS / *per_second,
                Gaps::Poisson { per_second, random } => {
                    // 1 - u is never zero.
                    self.at += -(1.0 - random.unit()).ln() * NANOS / *per_second;
                }
                Gaps::Listed(gaps) => {
                    self.at += gaps[((index - 1) % gaps.len() as u64) as usize] as f64;
                }
            }
        }
        self.at as u64
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let mine = self.next % self.shares == self.share;
            let at = self.step();
            if mine {
                return Some(at);
            }
        }
    }
}

/// SplitMix64: repeatable, and good enough for schedules and test data.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// In [0, bound).
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.unit() * bound as f64) as u64
    }
}

#[cfg(test)]
#[path = "arrivals_tests.rs"]
mod tests;
