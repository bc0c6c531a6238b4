//! Measures how busy the models are, when somebody asks.

use crate::LoadReport;
use crate::report::MAX_MODELS;
use crate::version_load::{VersionLoad, VersionReading};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trtserver_base::clock::now_ns;
use trtserver_base::state::{ServerPhase, ServerState};
use trtserver_models::{ModelTable, ModelVersion, OpenVersion};
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

/// How long a report is used: all requests of that time have the same one.
const INTERVAL: Duration = Duration::from_millis(250);

/// The utilization of the GPUs by UUID, from 0 to 1.
pub type GpuUtilization = Box<dyn Fn() -> Vec<(String, f64)> + Send + Sync>;

/// Makes load reports. Between two readings it holds a lock for the time of reading, and nothing
/// that requests need.
pub struct LoadReporter {
    models: Arc<ModelTable>,
    state: Arc<ServerState>,
    /// The predicted wait that counts as 1, for models whose queue has no timeout.
    wait_target: Duration,
    gpus: Option<GpuUtilization>,
    last: Mutex<Option<LastReading>>,
}

struct LastReading {
    at: Instant,
    report: Arc<LoadReport>,
    versions: HashMap<VersionKey, VersionReading>,
}

/// The address of a version's counters, which no other version has as long as they live.
type VersionKey = usize;

/// What all versions of a reading add up to.
#[derive(Default)]
struct ReportParts {
    report: LoadReport,
    versions: HashMap<VersionKey, VersionReading>,
}

impl LoadReporter {
    pub fn new(
        models: Arc<ModelTable>,
        state: Arc<ServerState>,
        wait_target: Duration,
        gpus: Option<GpuUtilization>,
    ) -> Self {
        Self { models, state, wait_target, gpus, last: Mutex::new(None) }
    }

    /// The report of now, or the last one if that is a fraction of a second old. The first one
    /// knows no rates.
    pub fn report(&self) -> Arc<LoadReport> {
        let mut last = self.last.lock();
        if let Some(last) = &*last
            && last.at.elapsed() < INTERVAL
        {
            return Arc::clone(&last.report);
        }
        let reading = self.read(last.as_ref());
        let report = Arc::clone(&reading.report);
        *last = Some(reading);
        report
    }

    fn read(&self, last: Option<&LastReading>) -> LastReading {
        let at = Instant::now();
        let mut parts = ReportParts::default();
        for model in self.models.all().values() {
            let name = format!("model.{}", model.name);
            let loads = model.versions.values().filter_map(|version| {
                let served = version.served()?;
                Some(self.read_version(version, &served, (at, last), &mut parts))
            });
            let busiest = loads.map(|load| load.utilization).max_by(f64::total_cmp);
            parts.report.utilization.extend(busiest.map(|utilization| (name, utilization)));
        }
        let ReportParts { mut report, versions } = parts;
        report.utilization.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        report.utilization.truncate(MAX_MODELS);
        report.application_utilization = report.utilization.first().map_or(0.0, |(_, load)| *load);
        if let Some(gpus) = &self.gpus {
            let name = |(uuid, load)| (format!("gpu.{uuid}"), load);
            report.utilization.extend(gpus().into_iter().map(name));
        }
        report.draining = self.state.is_withdrawn() || self.state.phase() == ServerPhase::Exiting;
        LastReading { at, report: Arc::new(report), versions }
    }

    fn read_version(
        &self,
        version: &ModelVersion,
        served: &OpenVersion,
        (at, last): (Instant, Option<&LastReading>),
        parts: &mut ReportParts,
    ) -> VersionLoad {
        let counters = version.stats.snapshot();
        let now = VersionReading::read(&counters);
        let key = Arc::as_ptr(&version.stats) as VersionKey;
        parts.versions.insert(key, now);
        let waiting = served.scheduler.waiting();
        parts.report.pending_requests += waiting;
        // Ensembles have none; their steps are models themselves.
        let instances = served.scheduler.instances();
        let wait = instances.map_or(Duration::ZERO, |instances| {
            served.stats.service_estimate(now_ns(), instances).wait(waiting, instances)
        });
        let target = queue_timeout(&served.config).unwrap_or(self.wait_target);
        let earlier = last.and_then(|last| last.versions.get(&key)).copied().unwrap_or(now);
        let elapsed = last.map_or(INTERVAL, |last| at.saturating_duration_since(last.at));
        let mut load = now.load_since(&earlier, elapsed, instances.unwrap_or(1), (wait, target));
        if instances.is_none() {
            load.utilization = 0.0;
        }
        parts.report.requests_per_second += load.requests_per_second;
        parts.report.errors_per_second += load.errors_per_second;
        load
    }
}

/// The default timeout of the model's queue, if it has one.
pub fn queue_timeout(config: &ModelConfig) -> Option<Duration> {
    let Some(SchedulingChoice::DynamicBatching(dynamic)) = &config.scheduling_choice else {
        return None;
    };
    let timeout_us = dynamic.default_queue_policy.as_ref()?.default_timeout_microseconds;
    (timeout_us > 0).then(|| Duration::from_micros(timeout_us))
}
