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

use cpu::Cpus;
use std::sync::Arc;
use std::time::Duration;
use trtserver_models::ModelTable;
use trtserver_plugin_host::host_api::metric;

/// What the page shows.
pub struct Page {
    models: Arc<ModelTable>,
    gpus: Option<Gpus>,
    cpus: Option<Cpus>,
}

impl Page {
    /// `cpus`: with the machine's memory and CPUs, which are read once in `interval`.
    pub fn new(
        models: Arc<ModelTable>,
        gpus: Option<Gpus>,
        cpus: bool,
        interval: Duration,
    ) -> Self {
        Self { models, gpus, cpus: cpus.then(|| Cpus::new(interval)) }
    }

    /// All metrics. Families without series are omitted.
    pub fn text(&self, format: Format) -> String {
        let mut families = model::families(&self.models);
        families.extend(budget::families());
        families.extend(memory::families(&self.models));
        families.extend(process::families());
        families.extend(repository::families(&self.models));
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
