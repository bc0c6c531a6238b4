//! Latency histograms and summaries of a model version: which there are, and which are recorded
//! (`--metrics-config`).

use super::histogram::{BucketBounds, DurationHistogram};
use super::quantiles::RecentDurations;
use std::sync::Arc;

/// What is recorded beside the counters.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencySettings {
    /// The cumulative durations are shown.
    pub counters: bool,
    pub histograms: bool,
    pub summaries: bool,
    /// Quantiles that the summaries show.
    pub quantiles: Vec<f64>,
}

impl Default for LatencySettings {
    fn default() -> Self {
        let quantiles = vec![0.5, 0.9, 0.95, 0.99, 0.999];
        Self { counters: true, histograms: true, summaries: false, quantiles }
    }
}

/// A histogram that every model version has.
pub struct HistogramKind {
    pub family: &'static str,
    pub help: &'static str,
    /// Nanoseconds of the metric's unit.
    pub unit_ns: f64,
    /// Default bounds, in that unit.
    bounds: &'static [f64],
}

const SECOND: f64 = 1e9;
const DURATIONS: &[f64] = &[
    0.000_05, 0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0,
];

/// In the order of the fields of [`LatencyHistograms`].
pub const HISTOGRAMS: [HistogramKind; 4] = [
    HistogramKind {
        family: "trtserver_request_duration_seconds",
        help: "Duration of successful requests, from their first byte to their final response",
        unit_ns: SECOND,
        bounds: DURATIONS,
    },
    HistogramKind {
        family: "trtserver_queue_duration_seconds",
        help: "Time that successful requests waited in the queue of the model",
        unit_ns: SECOND,
        bounds: DURATIONS,
    },
    HistogramKind {
        family: "trtserver_compute_duration_seconds",
        help: "Duration of the executions of successful requests",
        unit_ns: SECOND,
        bounds: DURATIONS,
    },
    HistogramKind {
        family: FIRST_RESPONSE,
        help: "Duration from request to first response in milliseconds",
        unit_ns: 1e6,
        bounds: &[100.0, 500.0, 2000.0, 5000.0],
    },
];

/// Of a model that is not decoupled it counts requests: their only response is the first.
pub const FIRST_RESPONSE: &str = "nv_inference_first_response_histogram_ms";

/// Bounds of the histograms of a version, in the order of [`HISTOGRAMS`].
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramBuckets([Arc<BucketBounds>; HISTOGRAMS.len()]);

impl HistogramBuckets {
    /// `bounds` returns the bounds of a family in its unit; `None` selects the default bounds.
    pub fn new<'a>(bounds: impl Fn(&str) -> Option<&'a [f64]>) -> Self {
        Self(HISTOGRAMS.each_ref().map(|kind| {
            Arc::new(BucketBounds::new(bounds(kind.family).unwrap_or(kind.bounds), kind.unit_ns))
        }))
    }
}

impl Default for HistogramBuckets {
    fn default() -> Self {
        Self::new(|_| None)
    }
}

/// The histograms of one instance.
#[derive(Clone, Debug)]
pub struct LatencyHistograms([DurationHistogram; HISTOGRAMS.len()]);

impl LatencyHistograms {
    pub fn new(buckets: &HistogramBuckets) -> Self {
        Self(buckets.0.each_ref().map(DurationHistogram::new))
    }

    pub(super) fn add_request(&mut self, request: u64, queue: u64, compute: u64) {
        let [requests, queues, computes, _] = &mut self.0;
        requests.add(request);
        queues.add(queue);
        computes.add(compute);
    }

    /// A request that was not executed.
    pub(super) fn add_cached(&mut self, request: u64, queue: u64) {
        let [requests, queues, _, first_responses] = &mut self.0;
        requests.add(request);
        queues.add(queue);
        first_responses.add(request);
    }

    pub(super) fn add_first_response(&mut self, ns: u64) {
        self.0[HISTOGRAMS.len() - 1].add(ns);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| a.merge(b));
    }

    /// In the order of [`HISTOGRAMS`].
    pub fn histograms(&self) -> &[DurationHistogram] {
        &self.0
    }
}

/// Durations of the summaries: request, queue, and input, inference and output of the execution;
/// then look-ups of the response cache that hit, and that missed.
#[derive(Clone, Debug, Default)]
pub struct LatencySummaries([RecentDurations; 7]);

impl LatencySummaries {
    pub(super) fn add(&mut self, now_ns: u64, durations: [u64; 5]) {
        self.0.iter_mut().zip(durations).for_each(|(recent, ns)| recent.add(now_ns, ns));
    }

    pub(super) fn add_hit(&mut self, now_ns: u64, ns: u64) {
        self.0[5].add(now_ns, ns);
    }

    pub(super) fn add_miss(&mut self, now_ns: u64, ns: u64) {
        self.0[6].add(now_ns, ns);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| a.merge(b));
    }

    pub fn durations(&self) -> &[RecentDurations; 7] {
        &self.0
    }
}
