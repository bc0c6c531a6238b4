//! A histogram of durations with buckets that are 2 % wide.

const BUCKETS: usize = 1024;
/// Upper bound of the first bucket.
const LEAST_NS: f64 = 1000.0;
const WIDTH: f64 = 1.02;

/// Durations of requests.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    counts: Vec<f64>,
    count: f64,
    sum_ns: f64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { counts: vec![0.0; BUCKETS], count: 0.0, sum_ns: 0.0 }
    }
}

impl LatencyHistogram {
    pub fn add(&mut self, ns: f64) {
        let bucket = if ns <= LEAST_NS { 0.0 } else { (ns / LEAST_NS).ln() / WIDTH.ln() };
        self.counts[(bucket.ceil() as usize).min(BUCKETS - 1)] += 1.0;
        self.count += 1.0;
        self.sum_ns += ns;
    }

    /// Adds a scaled copy.
    pub fn merge(&mut self, other: &Self, factor: f64) {
        for (own, count) in self.counts.iter_mut().zip(&other.counts) {
            *own += factor * count;
        }
        self.count += factor * other.count;
        self.sum_ns += factor * other.sum_ns;
    }

    pub fn count(&self) -> f64 {
        self.count
    }

    pub fn mean_ms(&self) -> f64 {
        if self.count > 0.0 { self.sum_ns / self.count / 1e6 } else { 0.0 }
    }

    /// The upper bound of the bucket with this quantile.
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        let mut left = quantile * self.count;
        for (bucket, count) in self.counts.iter().enumerate() {
            left -= count;
            if left <= 0.0 {
                return LEAST_NS * WIDTH.powi(bucket as i32) / 1e6;
            }
        }
        0.0
    }
}
