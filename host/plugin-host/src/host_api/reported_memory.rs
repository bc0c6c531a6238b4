//! Memory that backends hold beside memory of the host, as they report it with `memory_report`: by
//! scope, memory type and device. Read by the accounting of memory.

use crate::host_state::HOST;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use trtserver_plugin_api::abi::types::{Memory, memory_type};

/// Whom reported memory belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// As in log lines: `backend onnxruntime`, `model digits:1`, `instance digits_0_cpu`.
    pub label: Arc<str>,
    /// Name and version of the model; `None` for a backend.
    pub model: Option<(Arc<str>, i64)>,
}

/// A report that is not 0.
#[derive(Clone, Debug)]
pub struct ReportedMemory {
    pub reporter: Reporter,
    pub memory: Memory,
    pub bytes: u64,
}

/// The reports of backends.
pub(crate) struct MemoryReports {
    /// By the id of their scope, memory type and device id.
    reports: Mutex<BTreeMap<(u64, u32, i32), ReportedMemory>>,
    observer: OnceLock<Observer>,
}

impl MemoryReports {
    pub const fn new() -> Self {
        Self { reports: Mutex::new(BTreeMap::new()), observer: OnceLock::new() }
    }
}

/// All reports that are not 0.
pub fn reported_memory() -> Vec<ReportedMemory> {
    HOST.reports.reports.lock().values().cloned().collect()
}

/// Called with the id of the scope and the report, when it has changed.
type Observer = Box<dyn Fn(u64, &ReportedMemory) + Send + Sync>;

/// Has all reports of this process passed on to `observer`. Set once.
pub fn set_observer(observer: impl Fn(u64, &ReportedMemory) + Send + Sync + 'static) {
    let _ = HOST.reports.observer.set(Box::new(observer));
}

fn notify_observer(id: u64, report: &ReportedMemory) {
    if let Some(observer) = HOST.reports.observer.get() {
        observer(id, report);
    }
}

/// Replaces the report of scope `id` for that memory.
pub fn report_memory(id: u64, reporter: &Reporter, memory: Memory, bytes: u64) {
    let key = (id, memory.memory_type, memory.device_id);
    let report = ReportedMemory { reporter: reporter.clone(), memory, bytes };
    let mut reports = HOST.reports.reports.lock();
    let before = match bytes {
        0 => reports.remove(&key),
        _ => reports.insert(key, report.clone()),
    };
    drop(reports);
    if before.map_or(0, |before| before.bytes) != bytes {
        notify_observer(id, &report);
    }
}

/// Removes the reports of scope `id`, which is closed, and returns them.
pub fn remove_reports(id: u64) -> Vec<ReportedMemory> {
    let mut reports = HOST.reports.reports.lock();
    let keys: Vec<_> =
        reports.range((id, 0, i32::MIN)..=(id, u32::MAX, i32::MAX)).map(|(key, _)| *key).collect();
    let removed: Vec<_> = keys.iter().filter_map(|key| reports.remove(key)).collect();
    drop(reports);
    for report in &removed {
        notify_observer(id, &ReportedMemory { bytes: 0, ..report.clone() });
    }
    removed
}

/// `GPU 1 memory`, for log lines and errors.
pub fn memory_name(memory: Memory) -> String {
    match memory.memory_type {
        memory_type::CPU => "CPU memory".into(),
        memory_type::PINNED => "pinned memory".into(),
        memory_type::GPU => format!("GPU {} memory", memory.device_id),
        memory_type::MANAGED => format!("managed memory of GPU {}", memory.device_id),
        other => format!("memory of type {other}"),
    }
}

#[cfg(test)]
#[path = "reported_memory_tests.rs"]
mod tests;
