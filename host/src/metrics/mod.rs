//! Prometheus text for the metrics port, gathered when somebody looks.

mod family; // metric families of the prometheus crate, built from counts
mod gpu; // NVML
mod model; // inference counters per model version

pub use gpu::Gpus;

use crate::plugin::host_api::metric::REGISTRY;
use crate::repository::ModelTable;
use prometheus::TextEncoder;

/// Everything there is, in text format 0.0.4. A family without series prints nothing at all.
pub fn text(models: &ModelTable, gpus: Option<&Gpus>) -> String {
    let mut families = model::families(models);
    if let Some(gpus) = gpus {
        families.extend(gpus.families());
    }
    families.extend(REGISTRY.gather());
    families.retain(|f| !f.get_metric().is_empty());
    let mut text = String::new();
    if let Err(e) = TextEncoder::new().encode_utf8(&families, &mut text) {
        tracing::error!("metrics could not be printed: {e}");
    }
    text
}
