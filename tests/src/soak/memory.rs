//! Resident memory over the number of requests, and its slope.

/// Samples of (requests so far, KiB).
#[derive(Debug, Default)]
pub struct Memory {
    samples: Vec<(u64, u64)>,
}

impl Memory {
    pub fn sample(&mut self, requests: u64, kib: u64) {
        self.samples.push((requests, kib));
    }

    pub fn first_and_last(&self) -> Option<(u64, u64)> {
        Some((self.samples.first()?.1, self.samples.last()?.1))
    }

    /// Least squares through the samples of the second half, when pools and buffers have filled:
    /// KiB for each hundred thousand requests.
    pub fn slope(&self) -> f64 {
        let settled = &self.samples[self.samples.len() / 2..];
        let n = settled.len() as f64;
        let mean =
            |of: fn(&(u64, u64)) -> u64| settled.iter().map(|s| of(s) as f64).sum::<f64>() / n;
        let (x, y) = (mean(|s| s.0), mean(|s| s.1));
        let mut products = 0.0;
        let mut squares = 0.0;
        for sample in settled {
            let dx = sample.0 as f64 - x;
            products += dx * (sample.1 as f64 - y);
            squares += dx * dx;
        }
        if squares > 0.0 { products / squares * 100_000.0 } else { 0.0 }
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
