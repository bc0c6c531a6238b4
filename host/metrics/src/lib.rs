//! The metrics page for Prometheus, gathered per scrape. A scrape waits for no load or execution:
//! every lock that it takes is held for a few instructions. It asks the processes of isolated models
//! for metrics that their backends have set, and waits a short time for them.

#![forbid(unsafe_code)]

mod access;
mod budget;
mod cached_reading;
mod cpu;
mod family;
mod gpu;
mod latency;
mod load_families;
mod memory;
mod model;
mod process;
mod repository;
mod telemetry;
mod text;
mod tls;

pub use gpu::GpuMetrics;
pub use telemetry::TelemetryStats;
pub use text::MetricsFormat;

use cached_reading::CachedReading;
use cpu::CpuMetrics;
use prometheus::proto::MetricFamily;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trtserver_base::access_stats::AccessStats;
use trtserver_base::heap::{self, HeapUsage};
use trtserver_base::stats::LatencySettings;
use trtserver_base::tls_stats::TlsStats;
use trtserver_load_report::LoadReporter;
use trtserver_model_store::CacheUsage;
use trtserver_models::ModelTable;
use trtserver_plugin_host::host_api::metric;

/// How long values that take time to read are shown.
const SECOND: Duration = Duration::from_secs(1);

/// Limit of the wait for the values of other processes, which send them in much less than a
/// millisecond unless they are stopped.
const REFRESH_LIMIT: Duration = Duration::from_millis(100);

/// What the page shows.
pub struct MetricsPage {
    models: Arc<ModelTable>,
    gpus: Option<Arc<GpuMetrics>>,
    cpus: Option<CpuMetrics>,
    latency: LatencySettings,
    /// Of each listener with TLS.
    tls: Vec<Arc<TlsStats>>,
    access: Option<Arc<AccessStats>>,
    telemetry: TelemetryStats,
    load: Arc<LoadReporter>,
    process: CachedReading<Vec<MetricFamily>>,
    /// The allocator counts its blocks for some milliseconds when there are many.
    heap: CachedReading<Option<HeapUsage>>,
    /// The files of the cache are listed for it.
    cache: CachedReading<Option<CacheUsage>>,
}

impl MetricsPage {
    /// `cpus`: with the machine's memory and CPUs, which are read once in `interval`.
    pub fn new(
        models: Arc<ModelTable>,
        gpus: Option<Arc<GpuMetrics>>,
        cpus: bool,
        interval: Duration,
        latency: LatencySettings,
        tls: Vec<Arc<TlsStats>>,
        access: Option<Arc<AccessStats>>,
        telemetry: TelemetryStats,
        load: Arc<LoadReporter>,
    ) -> Self {
        let cpus = cpus.then(|| CpuMetrics::new(interval));
        let (process, heap, cache) =
            (CachedReading::new(SECOND), CachedReading::new(SECOND), CachedReading::new(SECOND));
        Self { models, gpus, cpus, latency, tls, access, telemetry, load, process, heap, cache }
    }

    /// All metrics. Families without series are omitted.
    pub fn text(&self, format: MetricsFormat) -> String {
        metric::refresh_metrics(Instant::now() + REFRESH_LIMIT);
        let mut families = model::model_families(&self.models, &self.latency);
        families.extend(budget::budget_families());
        families
            .extend(memory::memory_families(&self.models, self.heap.get(heap::read_heap_usage)));
        families.extend(self.process.get(process::read_process_families));
        families.extend(repository::repository_families(
            &self.models,
            self.cache.get(|| self.models.cache_usage()),
        ));
        families.extend(self.cpus.iter().flat_map(CpuMetrics::families));
        families.extend(self.gpus.iter().flat_map(|gpus| gpus.families()));
        families.extend(tls::tls_families(&self.tls));
        families.extend(self.access.iter().flat_map(|stats| access::access_families(stats)));
        families.extend(load_families::server_families(&self.load.report()));
        families.extend(telemetry::telemetry_families(&self.telemetry));
        families.extend(metric::gather_metrics());
        families.retain(|f| !f.get_metric().is_empty());
        text::encode_families(&families, format)
    }
}

/// The values of the family `name` of backends, with the value that `label` has in their series.
/// Blocks as a scrape does.
pub fn backend_metric_values(name: &str, label: &str) -> Vec<(String, f64)> {
    metric::refresh_metrics(Instant::now() + REFRESH_LIMIT);
    metric::by_label(name, label)
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
