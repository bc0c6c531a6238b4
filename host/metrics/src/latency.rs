//! Latency histograms and summaries of model versions (`--metrics-config`).

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use trtserver_base::clock::now_ns;
use trtserver_base::stats::{
    DurationSum, FIRST_RESPONSE, HISTOGRAMS, LatencySettings, VersionCounters,
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

/// The families under construction.
pub struct LatencyFamilies<'a> {
    settings: &'a LatencySettings,
    histograms: Vec<FamilyBuilder>,
    summaries: Vec<FamilyBuilder>,
}

impl<'a> LatencyFamilies<'a> {
    pub fn new(settings: &'a LatencySettings) -> Self {
        let histograms =
            HISTOGRAMS.iter().map(|kind| FamilyBuilder::histogram(kind.family, kind.help));
        let summaries = SUMMARIES.iter().map(|(name, help, _)| FamilyBuilder::summary(name, help));
        Self { settings, histograms: histograms.collect(), summaries: summaries.collect() }
    }

    /// Adds the series of one version, on one GPU or on the CPU. A histogram appears with the first
    /// request, that of first responses of a decoupled model with the model.
    pub fn put(&mut self, labels: &Labels, counters: &VersionCounters, decoupled: bool) {
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
            let (now, total) = (now_ns(), counters.total());
            let rows = SUMMARIES.iter().zip(summaries.durations());
            for (family, ((_, _, span), recent)) in self.summaries.iter_mut().zip(rows) {
                let at = &self.settings.quantiles;
                let values = recent.quantiles(now, at).into_iter().map(|ns| ns / 1000.0);
                let DurationSum { count, ns } = span(&total);
                let quantiles = at.iter().copied().zip(values);
                family.put_quantiles(labels, quantiles, (count, (ns / 1000) as f64));
            }
        }
    }

    pub fn done(self) -> impl Iterator<Item = MetricFamily> {
        self.histograms.into_iter().chain(self.summaries).map(FamilyBuilder::done)
    }
}
