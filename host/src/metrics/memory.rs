//! Metrics of the memory report, of the machine's memory and of its CPUs.

use super::family::{Family, Labels};
use crate::device::Driver;
use crate::repository::ModelTable;
use crate::repository::memory::{Entry, MemoryReport};
use crate::sync::Mutex;
use prometheus::proto::MetricFamily;

/// Families of the report that `GET /v2/trtserver/memory` shows.
pub fn families(models: &ModelTable) -> Vec<MetricFamily> {
    let report = MemoryReport::new(models);
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

fn gauge(name: &str, help: &str, value: f64) -> MetricFamily {
    let mut family = Family::gauge(name, help);
    family.put(&Labels::new(), value);
    family.done()
}

/// Where there is a CUDA driver.
fn pinned() -> Vec<MetricFamily> {
    let Ok(driver) = Driver::get() else { return Vec::new() };
    let pool = driver.pinned();
    let gauge = |name, help, bytes: u64| gauge(name, help, bytes as f64);
    vec![
        gauge(
            "nv_pinned_memory_pool_total_bytes",
            "Pinned memory pool total memory size, in bytes",
            pool.limit(),
        ),
        gauge(
            "nv_pinned_memory_pool_used_bytes",
            "Pinned memory pool used memory size, in bytes",
            pool.bytes().used,
        ),
    ]
}

/// Memory and use of the machine's CPUs (`--allow-cpu-metrics`).
pub fn cpu_families() -> Vec<MetricFamily> {
    let mut families = Vec::new();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if let Some((total, available)) = machine_memory(&memory) {
        let used = total.saturating_sub(available);
        families.push(gauge(
            "nv_cpu_memory_total_bytes",
            "CPU total memory (RAM), in bytes",
            total as f64,
        ));
        families.push(gauge(
            "nv_cpu_memory_used_bytes",
            "CPU used memory (RAM), in bytes",
            used as f64,
        ));
    }
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    if let Some(now) = CpuTimes::parse(&stat) {
        let last = std::mem::replace(&mut *LAST.lock(), now);
        let help = "CPU utilization rate [0.0 - 1.0]";
        families.push(gauge("nv_cpu_utilization", help, now.utilization_since(last)));
    }
    families
}

/// The CPU times at the last scrape.
static LAST: Mutex<CpuTimes> = Mutex::new(CpuTimes { idle: 0, total: 0 });

/// Time of all CPUs since the machine was started, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTimes {
    idle: u64,
    total: u64,
}

impl CpuTimes {
    /// From `/proc/stat`.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guest times are part of user and nice.
        let total = ticks.iter().take(8).sum();
        Some(Self { idle: ticks.get(3)? + ticks.get(4)?, total })
    }

    fn utilization_since(self, last: Self) -> f64 {
        let total = self.total.saturating_sub(last.total);
        let idle = self.idle.saturating_sub(last.idle).min(total);
        if total == 0 { 0.0 } else { (total - idle) as f64 / total as f64 }
    }
}

/// Total and available bytes of the machine, from `/proc/meminfo`.
fn machine_memory(meminfo: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
        Some(kib << 10)
    };
    Some((field("MemTotal")?, field("MemAvailable")?))
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
