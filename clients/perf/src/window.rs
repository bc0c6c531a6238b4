//! One measurement window: the requests that completed in it, and their figures. Pure.

use crate::engine::{CompletedRequests, Record};
use crate::statistics::ServerStats;

const NANOS: f32 = 1e9;

/// Figures of a window, or of several that were joined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    pub duration_ns: u64,
    pub requests: u64,
    pub sequences: u64,
    pub delayed: u64,
    pub responses: u64,
    pub failures: u64,
    pub first_failure: Option<String>,
    /// Sorted.
    pub latencies: Vec<u64>,
    pub average_ns: u64,
    pub deviation_us: u64,
    pub send_ns: u64,
    pub receive_ns: u64,
    pub infer_per_sec: f64,
    pub sequences_per_sec: f64,
    pub server: ServerStats,
}

/// Why a window has no figures.
#[derive(Debug, PartialEq, Eq)]
pub enum NoWindow {
    /// No request ended in it.
    NoRequests,
    /// All requests failed: the first failure.
    AllFailed(String),
    /// The server's counters or the load threads failed.
    Broken(String),
}

impl NoWindow {
    /// With perf_client's text for a window without requests.
    pub fn text(&self) -> String {
        match self {
            NoWindow::NoRequests => {
                "No valid requests recorded within time interval. Please use a larger time window."
                    .to_owned()
            }
            NoWindow::AllFailed(first) => format!("all requests failed; the first: {first}"),
            NoWindow::Broken(problem) => problem.clone(),
        }
    }
}

impl From<String> for NoWindow {
    fn from(problem: String) -> Self {
        NoWindow::Broken(problem)
    }
}

/// The centre of what was recorded, of the length of a window: from the first sending and the last
/// end, equal parts are left out.
pub fn window_bounds(records: &[Record], length: u64) -> (u64, u64) {
    let first = records.iter().map(|record| record.begun).min().unwrap_or(0);
    let last = records.iter().map(|record| record.end).max().unwrap_or(0);
    let start = first + last.saturating_sub(first + length) / 2;
    (start, start + length)
}

impl Window {
    /// Requests that end within the centred window count.
    ///
    /// # Errors
    /// No request ended within the window, or all failed.
    pub fn new(
        taken: CompletedRequests,
        length: u64,
        batch: usize,
        server: ServerStats,
    ) -> Result<Self, NoWindow> {
        let (start, end) = window_bounds(&taken.records, length);
        let counted = taken.records.iter().filter(|r| (start..=end).contains(&r.end));
        let mut window = Window { duration_ns: length, server, ..Self::default() };
        (window.failures, window.first_failure) = (taken.failures, taken.first_failure);
        let (mut send, mut receive) = (0_u64, 0_u64);
        for record in counted {
            window.latencies.push(record.end.saturating_sub(record.start));
            window.sequences += u64::from(record.ends_sequence);
            window.delayed += u64::from(record.delayed);
            window.responses += u64::from(record.responses);
            send += u64::from(record.send);
            receive += u64::from(record.receive);
        }
        window.requests = window.latencies.len() as u64;
        if window.requests == 0 {
            return Err(window.first_failure.map_or(NoWindow::NoRequests, NoWindow::AllFailed));
        }
        window.send_ns = send / window.requests;
        window.receive_ns = receive / window.requests;
        window.finish(batch);
        Ok(window)
    }

    /// Computes what follows from the latencies and counts.
    fn finish(&mut self, batch: usize) {
        self.latencies.sort_unstable();
        let count = self.requests.max(1);
        let sum: u128 = self.latencies.iter().map(|ns| u128::from(*ns)).sum();
        self.average_ns = (sum / u128::from(count)) as u64;
        // In microseconds, as perf_client computes it.
        let square = |ns: u64| u128::from(ns) * u128::from(ns) / 1_000_000;
        let squares: u128 = self.latencies.iter().map(|ns| square(*ns)).sum();
        let variance = (squares / u128::from(count)).saturating_sub(square(self.average_ns));
        self.deviation_us = (variance as f64).sqrt() as u64;
        // perf_client divides in single precision, which its printed digits show.
        let seconds = self.duration_ns as f32 / NANOS;
        self.infer_per_sec = f64::from((self.requests * batch as u64) as f32 / seconds);
        self.sequences_per_sec = f64::from(self.sequences as f32 / seconds);
    }

    /// Several windows as one.
    pub fn joined(windows: &[Window], batch: usize) -> Self {
        let mut all = Window::default();
        let (mut send, mut receive) = (0, 0);
        for window in windows {
            all.duration_ns += window.duration_ns;
            all.requests += window.requests;
            all.sequences += window.sequences;
            all.delayed += window.delayed;
            all.responses += window.responses;
            all.failures += window.failures;
            all.first_failure = all.first_failure.or_else(|| window.first_failure.clone());
            all.latencies.extend_from_slice(&window.latencies);
            send += window.send_ns * window.requests;
            receive += window.receive_ns * window.requests;
            if all.server.model.is_empty() {
                all.server = window.server.clone();
            } else {
                all.server.add(&window.server);
            }
        }
        all.send_ns = send / all.requests.max(1);
        all.receive_ns = receive / all.requests.max(1);
        all.finish(batch);
        all
    }

    /// A percentile of the latency, as perf_client picks it.
    pub fn percentile(&self, percent: f64) -> u64 {
        let last = self.latencies.len().saturating_sub(1);
        let index = (percent / 100.0 * last as f64 + 0.5) as usize;
        self.latencies.get(index.min(last)).copied().unwrap_or(0)
    }

    /// The latency that is judged: a percentile, or the average.
    pub fn judged(&self, percentile: Option<u32>) -> u64 {
        percentile.map_or(self.average_ns, |percent| self.percentile(percent.into()))
    }
}

/// Windows needed for a stable result.
pub const STABLE: usize = 3;

/// The windows of one load point, as far as stability is concerned.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    /// Inferences per second and judged latency of each window; 0 and the largest for a window
    /// without a request.
    windows: Vec<(f64, u64)>,
}

/// What follows from the windows so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialDecision {
    Continue,
    Stable,
    /// The last windows are all above the latency limit.
    OverLimit,
    Exhausted,
}

impl Trials {
    pub fn add(&mut self, infer_per_sec: f64, latency: u64) {
        self.windows.push((infer_per_sec, latency));
    }

    pub fn add_failed(&mut self) {
        self.windows.push((0.0, u64::MAX));
    }

    pub fn count(&self) -> usize {
        self.windows.len()
    }

    /// Stable: throughput and latency of the last three windows are within the threshold of their
    /// means.
    pub fn next(&self, stability: f64, limit_ms: u64, max_trials: usize) -> TrialDecision {
        if let Some(last) = self.windows.len().checked_sub(STABLE) {
            let last = &self.windows[last..];
            let mean =
                |value: fn(&(f64, u64)) -> f64| last.iter().map(value).sum::<f64>() / STABLE as f64;
            let within = |value: fn(&(f64, u64)) -> f64| {
                let mean = mean(value);
                last.iter().all(|window| (value(window) - mean).abs() <= mean * stability)
            };
            let failed = last.iter().any(|window| window.0 == 0.0);
            if !failed && within(|window| window.0) && within(|window| window.1 as f64) {
                return TrialDecision::Stable;
            }
            let limit = limit_ms.saturating_mul(1_000_000);
            if limit_ms > 0 && !failed && last.iter().all(|window| window.1 >= limit) {
                return TrialDecision::OverLimit;
            }
        }
        if self.windows.len() >= max_trials {
            TrialDecision::Exhausted
        } else {
            TrialDecision::Continue
        }
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
