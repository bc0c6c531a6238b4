//! Prometheus text for the metrics endpoint, gathered per scrape.

mod budget; // the memory budget
mod family; // builds metric families of the prometheus crate
mod gpu; // GPU metrics through NVML
mod memory; // the memory report, and the machine's memory and CPUs
mod model; // inference metrics per model version

pub use gpu::Gpus;

use crate::plugin::host_api::metric;
use crate::repository::ModelTable;
use prometheus::TextEncoder;

/// All metrics in text format 0.0.4. Families without series are omitted. `cpu`: with those of the
/// machine's CPUs and memory.
pub fn text(models: &ModelTable, gpus: Option<&Gpus>, cpu: bool) -> String {
    let mut families = model::families(models);
    families.extend(budget::families());
    families.extend(memory::families(models));
    if cpu {
        families.extend(memory::cpu_families());
    }
    if let Some(gpus) = gpus {
        families.extend(gpus.families());
    }
    families.extend(metric::gather());
    families.retain(|f| !f.get_metric().is_empty());
    let mut text = String::new();
    if let Err(e) = TextEncoder::new().encode_utf8(&families, &mut text) {
        tracing::error!("cannot encode metrics: {e}");
    }
    text
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
