//! The metrics page for Prometheus, gathered per scrape. A scrape waits for no load or execution:
//! every lock that it takes is held for a few instructions. It asks the processes of isolated models
//! for metrics that their backends have set, and waits a short time for them.

#![forbid(unsafe_code)]

mod access;
mod budget;
mod cached_reading;
mod clients;
mod cpu;
mod family;
mod gpu;
mod latency;
mod limiter;
mod load_families;
mod memory;
mod model;
mod process;
mod repository;
mod response_cache;
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
use trtserver_base::fair_clients::FairClients;
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

/// Where the page reads.
pub struct MetricsSources {
    pub models: Arc<ModelTable>,
    pub gpus: Option<Arc<GpuMetrics>>,
    /// Of each listener with TLS.
    pub tls: Vec<Arc<TlsStats>>,
    pub access: Option<Arc<AccessStats>>,
    /// Those that are served in turn.
    pub clients: Option<Arc<FairClients>>,
    pub telemetry: TelemetryStats,
    pub load: Arc<LoadReporter>,
}

/// What the page shows.
pub struct MetricsPage {
    sources: MetricsSources,
    cpus: Option<CpuMetrics>,
    latency: LatencySettings,
    process: CachedReading<Vec<MetricFamily>>,
    /// The allocator counts its blocks for some milliseconds when there are many.
    heap: CachedReading<Option<HeapUsage>>,
    /// The files of the cache are listed for it.
    cache: CachedReading<Option<CacheUsage>>,
}

impl MetricsPage {
    /// `cpus`: with the machine's memory and CPUs, which are read once in this interval.
    pub fn new(sources: MetricsSources, cpus: Option<Duration>, latency: LatencySettings) -> Self {
        let cpus = cpus.map(CpuMetrics::new);
        let (process, heap, cache) =
            (CachedReading::new(SECOND), CachedReading::new(SECOND), CachedReading::new(SECOND));
        Self { sources, cpus, latency, process, heap, cache }
    }

    /// All metrics. Families without series are omitted.
    pub fn text(&self, format: MetricsFormat) -> String {
        metric::refresh_metrics(Instant::now() + REFRESH_LIMIT);
        let MetricsSources { models, gpus, tls, access, clients, telemetry, load } = &self.sources;
        let mut families = model::model_families(models, &self.latency);
        families.extend(budget::budget_families());
        families.extend(memory::memory_families(models, self.heap.get(heap::read_heap_usage)));
        families.extend(self.process.get(process::read_process_families));
        families.extend(repository::repository_families(
            models,
            self.cache.get(|| models.cache_usage()),
        ));
        families.extend(
            models.limiter().into_iter().flat_map(|of| limiter::limiter_families(&of.report())),
        );
        families.extend(self.cpus.iter().flat_map(CpuMetrics::families));
        families.extend(gpus.iter().flat_map(|gpus| gpus.families()));
        families.extend(tls::tls_families(tls));
        families.extend(access.iter().flat_map(|stats| access::access_families(stats)));
        families.extend(clients.iter().flat_map(|of| clients::client_families(&of.report())));
        families.extend(load_families::server_families(&load.report()));
        families.extend(telemetry::telemetry_families(telemetry));
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
