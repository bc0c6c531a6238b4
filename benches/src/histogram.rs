//! Latencies in logarithmic buckets: constant memory, 1.6 % resolution.

use std::time::Duration;

/// Buckets for each doubling.
const STEPS: u64 = 64;

pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
}

impl Histogram {
    pub fn new() -> Self {
        Histogram { buckets: vec![0; 64 * STEPS as usize], count: 0 }
    }

    pub fn record(&mut self, latency: Duration) {
        let bucket = bucket(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            *bucket += 1;
        }
        self.count += 1;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The quantile in microseconds.
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle(bucket as u64) / 1000.0;
            }
        }
        0.0
    }
}

/// Linear below one doubling's steps, then `STEPS` buckets for each doubling.
fn bucket(ns: u64) -> usize {
    let doubling = ns.max(1).ilog2().saturating_sub(STEPS.ilog2());
    let bucket = if doubling == 0 { ns } else { u64::from(doubling) * STEPS + (ns >> doubling) };
    bucket as usize
}

fn middle(bucket: u64) -> f64 {
    if bucket < 2 * STEPS {
        return bucket as f64 + 0.5;
    }
    let doubling = (bucket - STEPS) / STEPS;
    let mantissa = bucket - doubling * STEPS;
    (mantissa as f64 + 0.5) * 2f64.powi(doubling as i32)
}

#[cfg(test)]
#[path = "histogram_tests.rs"]
mod tests;
