//! Metrics of the memory report, and of the pinned pool.

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use trtserver_base::heap::HeapUsage;
use trtserver_device::GpuDriver;
use trtserver_models::ModelTable;
use trtserver_models::memory::{MemoryEntry, MemoryReport};

/// Families of the report that `GET /v2/trtserver/memory` shows.
pub fn memory_families(models: &ModelTable, heap: Option<HeapUsage>) -> Vec<MetricFamily> {
    let report = MemoryReport::new(models, heap);
    let mut for_models = FamilyBuilder::gauge(
        "trtserver_model_memory_bytes",
        "Bytes that a model version holds, by what they are used for",
    );
    for model in &report.models {
        let mut labels = memory_label("model", &model.model);
        if let Some(version) = model.version {
            labels.extend(memory_label("version", &version.to_string()));
        }
        put_entries(&mut for_models, &labels, &model.memory.entries);
    }
    let mut of_server = FamilyBuilder::gauge(
        "trtserver_server_memory_bytes",
        "Bytes that belong to no model or to a request whose model is not known yet, by what they are used for",
    );
    put_entries(&mut of_server, &Labels::new(), &report.server.entries);
    let process = memory_state_family(
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
    let pool = memory_state_family(
        "trtserver_tensor_pool_bytes",
        "Blocks of 64 KiB and more for tensors: mapped in total, and free",
        &[("mapped", report.pool.mapped), ("free", report.pool.free)],
    );
    let heap = report.heap.map(|heap| {
        memory_state_family(
            "trtserver_allocator_bytes",
            "The heap: allocated, freed and kept by the allocator, and large blocks with mappings of their own",
            &[("in_use", heap.in_use), ("free", heap.free), ("mapped", heap.mapped)],
        )
    });
    let families = [for_models.done(), of_server.done(), process, pool];
    families.into_iter().chain(heap).chain(pinned_families()).collect()
}

fn put_entries(family: &mut FamilyBuilder, labels: &Labels, entries: &[MemoryEntry]) {
    for entry in entries {
        let mut labels = labels.clone();
        labels.extend(memory_label("holder", entry.holder));
        labels.extend(memory_label("type", entry.memory_type));
        labels.extend(memory_label("device", &entry.device.to_string()));
        family.put(&labels, entry.bytes as f64);
    }
}

fn memory_state_family(name: &str, help: &str, values: &[(&str, u64)]) -> MetricFamily {
    let mut family = FamilyBuilder::gauge(name, help);
    values
        .iter()
        .for_each(|(state, bytes)| family.put(&memory_label("state", state), *bytes as f64));
    family.done()
}

fn memory_label(name: &str, value: &str) -> Labels {
    vec![(name.to_owned(), value.to_owned())]
}

/// Without a CUDA driver there is no pinned memory, which dashboards see as 0.
fn pinned_families() -> [MetricFamily; 2] {
    let pool = GpuDriver::get().ok().map(|driver| driver.pinned());
    let (total, used) = pool.map_or((0, 0), |pool| (pool.limit(), pool.bytes().used));
    [
        FamilyBuilder::single_gauge(
            "nv_pinned_memory_pool_total_bytes",
            "Pinned memory pool total memory size, in bytes",
            total as f64,
        ),
        FamilyBuilder::single_gauge(
            "nv_pinned_memory_pool_used_bytes",
            "Pinned memory pool used memory size, in bytes",
            used as f64,
        ),
    ]
}
