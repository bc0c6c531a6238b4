//! Metrics of the memory report, and of the pinned pool.

use super::family::{Family, Labels};
use prometheus::proto::MetricFamily;
use trtserver_base::heap::HeapUsage;
use trtserver_device::Driver;
use trtserver_models::ModelTable;
use trtserver_models::memory::{Entry, MemoryReport};

/// Families of the report that `GET /v2/trtserver/memory` shows.
pub fn families(models: &ModelTable, heap: Option<HeapUsage>) -> Vec<MetricFamily> {
    let report = MemoryReport::new(models, heap);
    let mut of_models = Family::gauge(
        "trtserver_model_memory_bytes",
        "Bytes that a model version holds, by what they are used for",
    );
    for model in &report.models {
        let mut labels = label("model", &model.model);
        if let Some(version) = model.version {
            labels.extend(label("version", &version.to_string()));
        }
        put_entries(&mut of_models, &labels, &model.memory.entries);
    }
    let mut of_server = Family::gauge(
        "trtserver_server_memory_bytes",
        "Bytes that belong to no model or to a request whose model is not known yet, by what they are used for",
    );
    put_entries(&mut of_server, &Labels::new(), &report.server.entries);
    let process = states(
        "trtserver_process_memory_bytes",
        "Memory of the server's process",
        &[
            ("resident", report.process.resident),
            ("resident_peak", report.process.peak),
            ("anonymous", report.process.anonymous),
            ("file", report.process.file),
            ("shared", report.process.shared),
        ],
    );
    let pool = states(
        "trtserver_tensor_pool_bytes",
        "Blocks of 64 KiB and more for tensors: mapped in total, and free",
        &[("mapped", report.pool.mapped), ("free", report.pool.free)],
    );
    let heap = report.heap.map(|heap| {
        states(
            "trtserver_allocator_bytes",
            "The heap: allocated, freed and kept by the allocator, and large blocks with mappings of their own",
            &[("in_use", heap.in_use), ("free", heap.free), ("mapped", heap.mapped)],
        )
    });
    let families = [of_models.done(), of_server.done(), process, pool];
    families.into_iter().chain(heap).chain(pinned()).collect()
}

fn put_entries(family: &mut Family, labels: &Labels, entries: &[Entry]) {
    for entry in entries {
        let mut labels = labels.clone();
        labels.extend(label("holder", entry.holder));
        labels.extend(label("type", entry.memory_type));
        labels.extend(label("device", &entry.device.to_string()));
        family.put(&labels, entry.bytes as f64);
    }
}

fn states(name: &str, help: &str, values: &[(&str, u64)]) -> MetricFamily {
    let mut family = Family::gauge(name, help);
    values.iter().for_each(|(state, bytes)| family.put(&label("state", state), *bytes as f64));
    family.done()
}

fn label(name: &str, value: &str) -> Labels {
    vec![(name.to_owned(), value.to_owned())]
}

/// Without a CUDA driver there is no pinned memory, which dashboards see as 0.
fn pinned() -> [MetricFamily; 2] {
    let pool = Driver::get().ok().map(|driver| driver.pinned());
    let (total, used) = pool.map_or((0, 0), |pool| (pool.limit(), pool.bytes().used));
    [
        Family::single_gauge(
            "nv_pinned_memory_pool_total_bytes",
            "Pinned memory pool total memory size, in bytes",
            total as f64,
        ),
        Family::single_gauge(
            "nv_pinned_memory_pool_used_bytes",
            "Pinned memory pool used memory size, in bytes",
            used as f64,
        ),
    ]
}
