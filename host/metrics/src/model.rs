//! Inference metrics per model version: those of docs/protocol/v1.md §10 and of docs/protocol/v2.md
//! §5.1.

use super::family::{FamilyBuilder, Labels};
use super::latency::LatencyFamilies;
use super::load_families::LoadFamilies;
use super::response_cache::CacheFamilies;
use prometheus::proto::MetricFamily;
use std::collections::BTreeMap;
use trtserver_base::stats::{
    CLOSE_REASONS, DurationSum, FAILURE_REASONS, LOAD_RATIO_BOUNDS, LatencySettings,
    RequestCounters, VersionCounters,
};
use trtserver_models::{Model, ModelTable, ModelVersion};

/// Name, help and value of a counter.
type CounterRow = (&'static str, &'static str, CounterValue);
type CounterValue = fn(&VersionCounters, &RequestCounters) -> f64;

fn span_us(span: DurationSum) -> f64 {
    (span.ns / 1000) as f64
}

const COUNTERS: [CounterRow; 9] = [
    (
        "nv_inference_request_success",
        "Number of successful inference requests, all batch sizes",
        |_, t| t.success.count as f64,
    ),
    (
        "nv_inference_count",
        "Number of inferences performed (does not include cached requests)",
        |c, _| c.inference_count as f64,
    ),
    (
        "nv_inference_exec_count",
        "Number of model executions performed (does not include cached requests)",
        |c, _| c.execution_count as f64,
    ),
    (
        "nv_inference_request_duration_us",
        "Cumulative inference request duration in microseconds (includes cached requests)",
        |_, t| span_us(t.success),
    ),
    (
        "nv_inference_queue_duration_us",
        "Cumulative inference queuing duration in microseconds (includes cached requests)",
        |_, t| span_us(t.queue),
    ),
    (
        "nv_inference_compute_duration_us",
        "Cumulative duration of executions in microseconds",
        |_, t| span_us(t.compute),
    ),
    (
        "nv_inference_compute_input_duration_us",
        "Cumulative compute input duration in microseconds (does not include cached requests)",
        |_, t| span_us(t.compute_input),
    ),
    (
        "nv_inference_compute_infer_duration_us",
        "Cumulative compute inference duration in microseconds (does not include cached requests)",
        |_, t| span_us(t.compute_infer),
    ),
    (
        "nv_inference_compute_output_duration_us",
        "Cumulative inference compute output duration in microseconds (does not include cached requests)",
        |_, t| span_us(t.compute_output),
    ),
];

/// Families with one series per version that is loaded or should be, and per GPU of its instances;
/// versions that were unloaded have none.
pub fn model_families(models: &ModelTable, settings: &LatencySettings) -> Vec<MetricFamily> {
    // Without `counter_latencies` counters of durations are missing, as in Triton; the other
    // counters go on.
    let shown = |(name, ..): &&CounterRow| settings.counters || !name.ends_with("_duration_us");
    let (mut rows, values): (Vec<FamilyBuilder>, Vec<CounterValue>) = COUNTERS
        .iter()
        .filter(shown)
        .map(|(name, help, value)| (FamilyBuilder::counter(name, help), *value))
        .unzip();
    let mut failures = FamilyBuilder::counter(
        "nv_inference_request_failure",
        "Number of failed inference requests, all batch sizes",
    );
    let mut refused = FamilyBuilder::counter(
        "trtserver_request_refused_total",
        "Number of requests refused before they were queued, e.g. for the shape of an input",
    );
    let mut cancelled = FamilyBuilder::counter(
        "trtserver_request_cancelled_total",
        "Number of requests cancelled by their client, while queued or while executing",
    );
    let mut ratio = FamilyBuilder::histogram(
        "nv_inference_load_ratio",
        "Duration of successful requests over the duration of their execution",
    );
    let mut closed = FamilyBuilder::counter(
        "trtserver_batch_closed_total",
        "Number of batches executed, by the reason why the batch was closed",
    );
    let mut rows_of = FamilyBuilder::histogram(
        "trtserver_batch_rows",
        "Rows per executed batch, without null requests",
    );
    let mut warmup = FamilyBuilder::gauge(
        "trtserver_model_warmup_duration_us",
        "Total duration of a warm-up sample on the slowest instance in microseconds",
    );
    let mut backends = FamilyBuilder::gauge(
        "trtserver_model_backend_info",
        "1 for each loaded model version, labelled with its backend",
    );
    let mut load_failed = FamilyBuilder::gauge(
        "trtserver_model_load_failed",
        "1 for each model whose files could not be loaded as they are now, labelled with the reason",
    );
    let mut load_times =
        FamilyBuilder::gauge("nv_model_load_duration_secs", "Model load time in seconds");
    let (mut latencies, mut load) = (LatencyFamilies::new(settings), LoadFamilies::new());
    let mut cached = CacheFamilies::new(settings);
    for model in models.all().values() {
        if let Some(reason) = model.load_failure() {
            let labels =
                vec![("model".to_owned(), model.name.to_string()), ("reason".to_owned(), reason)];
            load_failed.put(&labels, 1.0);
        }
        for version in model.versions.values().filter(|v| !v.is_fully_unloaded()) {
            let labels = version_labels(model, version);
            let by_gpu = version.stats.by_gpu();
            let served = version.served();
            let decoupled = served.as_ref().is_some_and(|served| served.decoupled());
            let cache = served.as_ref().and_then(|served| served.response_cache.clone());
            let on_gpu = by_gpu.keys().any(Option::is_some);
            for (gpu, counters) in &by_gpu {
                let mut labels = labels.clone();
                match gpu {
                    Some(uuid) => labels.push(("gpu_uuid".into(), uuid.to_string())),
                    // Failures of a model that has instances on GPUs alone.
                    None if on_gpu && counters.inference_count == 0 => continue,
                    None => {}
                }
                let total = counters.total();
                for (family, value) in rows.iter_mut().zip(&values) {
                    family.put(&labels, value(counters, &total));
                }
                let (counts, sum) = (&counters.load_ratio, counters.load_ratio_sum);
                ratio.put_buckets(&labels, &LOAD_RATIO_BOUNDS, counts, sum);
                latencies.put(&labels, counters, decoupled, cache.is_some());
            }
            let counters = version.stats.snapshot();
            for (count, (_, reason)) in counters.failures.iter().zip(FAILURE_REASONS) {
                let mut labels = labels.clone();
                labels.push(("reason".into(), reason.into()));
                failures.put(&labels, *count as f64);
            }
            if let Some(cache) = &cache {
                cached.put(&labels, &counters, &cache.report());
                latencies.put_cache(&labels, &counters);
            }
            refused.put(&labels, counters.refused.count as f64);
            for (count, when) in counters.cancelled.iter().zip(["queued", "executing"]) {
                let mut labels = labels.clone();
                labels.push(("when".into(), when.into()));
                cancelled.put(&labels, *count as f64);
            }
            for (sample, span) in version.stats.warmup() {
                let mut labels = labels.clone();
                labels.push(("sample".into(), sample.to_string()));
                warmup.put(&labels, span_us(span));
            }
            for (count, reason) in counters.batches_closed.iter().zip(CLOSE_REASONS) {
                let mut labels = labels.clone();
                labels.push(("reason".into(), reason.into()));
                closed.put(&labels, *count as f64);
            }
            let (counts, sum) = batch_buckets(&counters.batch_rows);
            rows_of.put_buckets(&labels, &BATCH_ROWS_BOUNDS, &counts, sum);
            if let Some(times) = version.load_times() {
                load_times.put(&labels, times.total().as_secs_f64());
            }
            if let Some(served) = served {
                load.put(&labels, &served, &counters);
                if let Some(used) = &served.backend {
                    let isolation = if used.isolated { "process" } else { "none" };
                    let mut labels = labels.clone();
                    labels.push(("backend".into(), used.facts.name.clone()));
                    labels.push(("backend_version".into(), used.facts.version.clone()));
                    labels.push(("isolation".into(), isolation.into()));
                    backends.put(&labels, 1.0);
                }
            }
        }
    }
    rows.extend([
        failures,
        refused,
        cancelled,
        ratio,
        closed,
        rows_of,
        warmup,
        backends,
        load_failed,
        load_times,
    ]);
    let rows = rows.into_iter().map(FamilyBuilder::done);
    let store = models.response_store().map(|store| store.usage());
    rows.chain(latencies.done()).chain(load.done()).chain(cached.done(store)).collect()
}

/// Upper bounds of the batch-size histogram; +Inf follows.
const BATCH_ROWS_BOUNDS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Batches per bucket (+Inf last), and the sum of their rows.
fn batch_buckets(batches: &BTreeMap<u32, u64>) -> ([u64; BATCH_ROWS_BOUNDS.len() + 1], f64) {
    let mut counts = [0; BATCH_ROWS_BOUNDS.len() + 1];
    let mut sum = 0.0;
    for (&rows, &n) in batches {
        counts[BATCH_ROWS_BOUNDS.partition_point(|bound| *bound < f64::from(rows))] += n;
        sum += f64::from(rows) * n as f64;
    }
    (counts, sum)
}

/// `model`, `version`, and a label for every tag of the configuration.
fn version_labels(model: &Model, version: &ModelVersion) -> Labels {
    let mut labels = vec![
        ("model".to_owned(), model.name.to_string()),
        ("version".to_owned(), version.number.to_string()),
    ];
    if !model.namespace().is_empty() {
        labels.push(("namespace".to_owned(), model.namespace().to_owned()));
    }
    if let Some(config) = &model.config {
        labels.extend(tag_text(config.metric_tags.iter()));
    }
    labels
}

/// Labels `_<key>`, with characters that a label name cannot hold replaced by `_`. The first of
/// several keys with the same name is used: one invalid or duplicate name would make the whole page
/// unreadable.
fn tag_text<'a>(tags: impl Iterator<Item = (&'a String, &'a String)>) -> Labels {
    let mut labels = Labels::new();
    for (key, value) in tags {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = std::iter::once('_').chain(key.chars().map(plain)).collect();
        if labels.iter().all(|(n, _)| *n != name) {
            labels.push((name, value.clone()));
        }
    }
    labels
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
