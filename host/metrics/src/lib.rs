//! The metrics page for Prometheus, gathered per scrape. A scrape waits for no load, execution or process of a model: every lock that
//! it takes is held for a few instructions.

#![forbid(unsafe_code)]

mod budget;
mod cached;
mod cpu;
mod family;
mod gpu;
mod latency;
mod load;
mod memory;
mod model;
mod process;
mod repository;
mod text;

pub use gpu::Gpus;
pub use text::Format;

use cached::Cached;
use cpu::Cpus;
use prometheus::proto::MetricFamily;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::heap::{self, HeapUsage};
use trtserver_base::stats::LatencySettings;
use trtserver_model_store::CacheUsage;
use trtserver_models::ModelTable;
use trtserver_plugin_host::host_api::metric;

/// How long values that take time to read are shown.
const SECOND: Duration = Duration::from_secs(1);

/// What the page shows.
pub struct Page {
    models: Arc<ModelTable>,
    gpus: Option<Gpus>,
    cpus: Option<Cpus>,
    latency: LatencySettings,
    process: Cached<Vec<MetricFamily>>,
    /// The allocator counts its blocks for some milliseconds when there are many.
    heap: Cached<Option<HeapUsage>>,
    /// The files of the cache are listed for it.
    cache: Cached<Option<CacheUsage>>,
}

impl Page {
    /// `cpus`: with the machine's memory and CPUs, which are read once in `interval`.
    pub fn new(
        models: Arc<ModelTable>,
        gpus: Option<Gpus>,
        cpus: bool,
        interval: Duration,
        latency: LatencySettings,
    ) -> Self {
        let cpus = cpus.then(|| Cpus::new(interval));
        let (process, heap, cache) =
            (Cached::new(SECOND), Cached::new(SECOND), Cached::new(SECOND));
        Self { models, gpus, cpus, latency, process, heap, cache }
    }

    /// All metrics. Families without series are omitted.
    pub fn text(&self, format: Format) -> String {
        let mut families = model::families(&self.models, &self.latency);
        families.extend(budget::families());
        families.extend(memory::families(&self.models, self.heap.get(heap::usage)));
        families.extend(self.process.get(process::read));
        families.extend(repository::families(
            &self.models,
            self.cache.get(|| self.models.cache_usage()),
        ));
        families.extend(self.cpus.iter().flat_map(Cpus::families));
        families.extend(self.gpus.iter().flat_map(Gpus::families));
        families.extend(metric::gather());
        families.retain(|f| !f.get_metric().is_empty());
        text::encode(&families, format)
    }
}

/// The values of the family `name` of backends, with the value that `label` has in their series.
pub fn of_backends(name: &str, label: &str) -> Vec<(String, f64)> {
    metric::by_label(name, label)
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
