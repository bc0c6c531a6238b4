//! One version of a model in the status, as JSON.

use crate::advice::{ObservedModel, advise};
use crate::counters::VersionTotals;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use trtserver_base::stats::{CLOSE_REASONS, FAILURE_REASONS};
use trtserver_models::lifecycle::{LoadProgress, LoadTimes};
use trtserver_models::{Model, ModelVersion, OpenVersion};
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

/// A version; without `version` a model none of whose versions could be read.
#[derive(Serialize)]
pub struct ModelReport<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Name and repository, if it is not the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    state: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_unix_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loading: Option<LoadingReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<LoadReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<BackendReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduling: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_batch_size: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    instances: Vec<InstanceReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<QueueReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<CountsReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<CountsReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    advice: Vec<String>,
}

#[derive(Serialize)]
struct LoadingReport {
    elapsed_ms: f64,
    stage: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reported: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permille: Option<u32>,
}

#[derive(Serialize)]
struct LoadReport {
    fetch_ms: f64,
    parse_ms: f64,
    open_ms: f64,
    warm_ms: f64,
    total_ms: f64,
}

#[derive(Serialize)]
struct BackendReport {
    name: String,
    version: String,
    isolation: &'static str,
}

#[derive(Serialize)]
struct InstanceReport {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<i32>,
}

#[derive(Serialize)]
struct QueueReport {
    waiting: usize,
    executing: u64,
    /// 0: no limit.
    limit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_us: Option<u64>,
}

#[derive(Serialize)]
struct CountsReport {
    /// Of `recent`: what it covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    requests: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_per_s: Option<f64>,
    rows: u64,
    executions: u64,
    failures: BTreeMap<&'static str, u64>,
    refused: u64,
    cancelled: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_p99_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compute_p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compute_p99_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_per_batch: Option<f64>,
    batch_closed: BTreeMap<&'static str, u64>,
    batch_rows: BTreeMap<u32, u64>,
}

/// Readings of a version: now, and what came in the seconds before, if anything did.
pub struct VersionReadings<'a> {
    pub total: &'a VersionTotals,
    pub executing: u64,
    pub recent: Option<(f64, VersionTotals)>,
}

impl CountsReport {
    fn new(totals: &VersionTotals, seconds: Option<f64>) -> Self {
        let named = |names: &[&'static str], counts: &[u64]| {
            let pairs = names.iter().copied().zip(counts.iter().copied());
            pairs.filter(|(_, count)| *count > 0).collect()
        };
        let us =
            |histogram, quantile| totals.quantile_us(histogram, quantile).map(|us| round(us, 1));
        let (batches, rows) = totals.batches();
        let requests = totals.requests;
        Self {
            seconds: seconds.map(|s| round(s, 1)),
            requests,
            requests_per_s: seconds.map(|s| round(requests as f64 / s, 2)),
            rows: totals.rows,
            executions: totals.executions,
            failures: named(&FAILURE_REASONS.map(|(_, name)| name), &totals.failures),
            refused: totals.refused,
            cancelled: totals.cancelled.iter().sum(),
            mean_us: (requests > 0)
                .then(|| round(totals.request_ns as f64 / 1e3 / requests as f64, 1)),
            p50_us: us(0, 0.5),
            p99_us: us(0, 0.99),
            queue_p50_us: us(1, 0.5),
            queue_p99_us: us(1, 0.99),
            compute_p50_us: us(2, 0.5),
            compute_p99_us: us(2, 0.99),
            rows_per_batch: (batches > 0).then(|| round(rows, 2)),
            batch_closed: named(&CLOSE_REASONS, &totals.closed),
            batch_rows: totals.batch_rows.clone(),
        }
    }
}

impl<'a> ModelReport<'a> {
    /// A model without versions.
    pub fn without_versions(model: &'a Model) -> Self {
        let reason = model.refusal.clone().unwrap_or_default();
        Self { reason, ..Self::new(model) }
    }

    /// A version. `load`: it is being loaded. `unix_ms` turns the server's clock into a time.
    pub fn for_version(
        model: &'a Model,
        version: &ModelVersion,
        load: Option<&LoadProgress>,
        readings: Option<VersionReadings<'_>>,
        unix_ms: impl Fn(u64) -> u64,
    ) -> Self {
        let (state, reason) = model.version_status(version);
        let mut report = Self {
            version: Some(version.number.to_string()),
            state: state.name(),
            reason,
            since_unix_ms: Some(unix_ms(version.since_ns())),
            loading: load.map(LoadingReport::new),
            load: version.load_times().map(LoadReport::new),
            ..Self::new(model)
        };
        let served = version.served();
        if let Some(served) = &served {
            report.add_served(served);
        }
        let Some(VersionReadings { total, executing, recent }) = readings else { return report };
        report.total = Some(CountsReport::new(total, None));
        if let Some(served) = &served {
            report.queue = QueueReport::new(served, executing);
        }
        if let Some((seconds, recent)) = &recent {
            report.recent = Some(CountsReport::new(recent, Some(*seconds)));
            report.advice =
                served.iter().flat_map(|served| advise_version(served, recent)).collect();
        }
        report
    }

    fn new(model: &'a Model) -> Self {
        let config = model.config.as_deref();
        Self {
            name: &model.name,
            version: None,
            id: (model.id != model.name).then_some(&*model.id),
            state: "UNAVAILABLE",
            reason: String::new(),
            since_unix_ms: None,
            loading: None,
            load: None,
            backend: None,
            scheduling: config.map(scheduling_name),
            max_batch_size: config.map(|config| config.max_batch_size),
            instances: Vec::new(),
            queue: None,
            total: None,
            recent: None,
            advice: Vec::new(),
        }
    }

    fn add_served(&mut self, served: &OpenVersion) {
        self.backend = served.backend.as_ref().map(|used| BackendReport {
            name: used.facts.name.clone(),
            version: used.facts.version.clone(),
            isolation: if used.isolated { "process" } else { "none" },
        });
        let plans = served.instances.iter().flat_map(|instances| instances.plans());
        self.instances = plans
            .map(|plan| InstanceReport {
                kind: plan.kind.as_str_name(),
                gpu: (plan.device >= 0).then_some(plan.device),
                name: plan.name.to_string(),
            })
            .collect();
    }
}

impl LoadingReport {
    fn new(load: &LoadProgress) -> Self {
        let (reported, permille) = load.reported().unzip();
        let elapsed_ms = round(load.elapsed().as_secs_f64() * 1e3, 1);
        Self { elapsed_ms, stage: load.stage(), reported, permille }
    }
}

impl LoadReport {
    fn new(times: LoadTimes) -> Self {
        let ms = |time: std::time::Duration| round(time.as_secs_f64() * 1e3, 3);
        Self {
            fetch_ms: ms(times.fetch),
            parse_ms: ms(times.parse),
            open_ms: ms(times.open),
            warm_ms: ms(times.warm),
            total_ms: ms(times.total()),
        }
    }
}

impl QueueReport {
    /// `None` for an ensemble, whose requests wait in the queues of its steps.
    fn new(served: &OpenVersion, executing: u64) -> Option<Self> {
        served.scheduler.instances()?;
        let dynamic = match &served.config.scheduling_choice {
            Some(SchedulingChoice::DynamicBatching(dynamic)) => Some(dynamic),
            _ => None,
        };
        let policy = dynamic.and_then(|dynamic| dynamic.default_queue_policy.as_ref());
        Some(Self {
            waiting: served.scheduler.waiting(),
            executing,
            limit: policy.map_or(0, |policy| policy.max_queue_size),
            delay_us: dynamic.map(|dynamic| dynamic.max_queue_delay_microseconds),
        })
    }
}

fn advise_version(served: &Arc<OpenVersion>, recent: &VersionTotals) -> Vec<String> {
    advise(&ObservedModel {
        config: &served.config,
        recent,
        instances: served.scheduler.instances(),
    })
}

fn scheduling_name(config: &ModelConfig) -> &'static str {
    match config.scheduling_choice {
        None => "none",
        Some(SchedulingChoice::DynamicBatching(_)) => "dynamic_batching",
        Some(SchedulingChoice::SequenceBatching(_)) => "sequence_batching",
        Some(SchedulingChoice::EnsembleScheduling(_)) => "ensemble",
    }
}

fn round(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}
