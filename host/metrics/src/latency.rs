//! Latency histograms and summaries of model versions (`--metrics-config`).

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use trtserver_base::clock::now_ns;
use trtserver_base::stats::{
    DurationSum, FIRST_RESPONSE, HISTOGRAMS, LatencySettings, RecentDurations, VersionCounters,
};

/// Name, help, and count and sum of a summary, in the order of
/// [`trtserver_base::stats::LatencySummaries`].
type SummaryRow =
    (&'static str, &'static str, fn(&trtserver_base::stats::RequestCounters) -> DurationSum);

const SUMMARIES: [SummaryRow; 5] = [
    (
        "nv_inference_request_summary_us",
        "Summary of inference request duration in microseconds (includes cached requests)",
        |t| t.success,
    ),
    (
        "nv_inference_queue_summary_us",
        "Summary of inference queuing duration in microseconds (includes cached requests)",
        |t| t.queue,
    ),
    (
        "nv_inference_compute_input_summary_us",
        "Summary of compute input duration in microseconds (does not include cached requests)",
        |t| t.compute_input,
    ),
    (
        "nv_inference_compute_infer_summary_us",
        "Summary of compute inference duration in microseconds (does not include cached requests)",
        |t| t.compute_infer,
    ),
    (
        "nv_inference_compute_output_summary_us",
        "Summary of inference compute output duration in microseconds (does not include cached requests)",
        |t| t.compute_output,
    ),
];

/// Name, help, and count and sum of a summary of the response cache.
type CacheSummaryRow = (&'static str, &'static str, fn(&VersionCounters) -> DurationSum);

/// Of models with a response cache, in place of the first of [`SUMMARIES`]. They follow those of
/// requests in [`trtserver_base::stats::LatencySummaries`].
const CACHE_SUMMARIES: [CacheSummaryRow; 2] = [
    (
        "nv_cache_hit_summary_per_model",
        "Summary of cache hit counts/durations per model, in microseconds.",
        |c| c.cache_hit,
    ),
    (
        "nv_cache_miss_summary_per_model",
        "Summary of cache miss counts/durations per model, in microseconds.",
        |c| c.cache_miss,
    ),
];

/// The families under construction.
pub struct LatencyFamilies<'a> {
    settings: &'a LatencySettings,
    histograms: Vec<FamilyBuilder>,
    summaries: Vec<FamilyBuilder>,
    cache_summaries: Vec<FamilyBuilder>,
}

impl<'a> LatencyFamilies<'a> {
    pub fn new(settings: &'a LatencySettings) -> Self {
        let histograms =
            HISTOGRAMS.iter().map(|kind| FamilyBuilder::histogram(kind.family, kind.help));
        let summaries = SUMMARIES.iter().map(|(name, help, _)| FamilyBuilder::summary(name, help));
        let cache =
            CACHE_SUMMARIES.iter().map(|(name, help, _)| FamilyBuilder::summary(name, help));
        Self {
            settings,
            histograms: histograms.collect(),
            summaries: summaries.collect(),
            cache_summaries: cache.collect(),
        }
    }

    fn put_summary(
        settings: &LatencySettings,
        family: &mut FamilyBuilder,
        labels: &Labels,
        recent: &RecentDurations,
        DurationSum { count, ns }: DurationSum,
    ) {
        let at = &settings.quantiles;
        let values = recent.quantiles(now_ns(), at).into_iter().map(|ns| ns / 1000.0);
        let quantiles = at.iter().copied().zip(values);
        family.put_quantiles(labels, quantiles, (count, (ns / 1000) as f64));
    }

    /// Adds the summaries of the response cache of a version.
    pub fn put_cache(&mut self, labels: &Labels, counters: &VersionCounters) {
        let Some(summaries) = &counters.summaries else { return };
        let rows = CACHE_SUMMARIES.iter().zip(&summaries.durations()[SUMMARIES.len()..]);
        for (family, ((_, _, span), recent)) in self.cache_summaries.iter_mut().zip(rows) {
            Self::put_summary(self.settings, family, labels, recent, span(counters));
        }
    }

    /// Adds the series of one version, on one GPU or on the CPU. As in Triton, the summary of requests
    /// is missing if the version is `cached`. A histogram appears with the first
    /// request, that of first responses of a decoupled model with the model.
    pub fn put(
        &mut self,
        labels: &Labels,
        counters: &VersionCounters,
        decoupled: bool,
        cached: bool,
    ) {
        if let Some(latencies) = &counters.latencies {
            let kinds = HISTOGRAMS.iter().zip(latencies.histograms());
            for (family, (kind, histogram)) in self.histograms.iter_mut().zip(kinds) {
                if histogram.count() > 0 || (decoupled && kind.family == FIRST_RESPONSE) {
                    let sum = histogram.sum_ns() as f64 / kind.unit_ns;
                    family.put_buckets(labels, histogram.bounds(), histogram.counts(), sum);
                }
            }
        }
        if let Some(summaries) = &counters.summaries {
            let total = counters.total();
            let rows = SUMMARIES.iter().zip(summaries.durations());
            let families = self.summaries.iter_mut().zip(rows).skip(usize::from(cached));
            for (family, ((_, _, span), recent)) in families {
                Self::put_summary(self.settings, family, labels, recent, span(&total));
            }
        }
    }

    pub fn done(self) -> impl Iterator<Item = MetricFamily> {
        let summaries = self.summaries.into_iter().chain(self.cache_summaries);
        self.histograms.into_iter().chain(summaries).map(FamilyBuilder::done)
    }
}
