//! What the unload of a version gave back, for the log. What it did not is in the memory report
//! until it is freed.

use super::entry::{OwnerMemory, Totals};
use super::owner::{owner_version_memory, version_memory};
use trtserver_base::ledger::{LedgerOwner, ProcessMemory};
use trtserver_plugin_host::health::IsolatedMemory;
use trtserver_plugin_host::reported_memory;

/// Memory of a version and of the server when the unload began.
pub struct UnloadReport {
    model: String,
    version: i64,
    owner: LedgerOwner,
    memory: OwnerMemory,
    resident: u64,
}

impl UnloadReport {
    /// `isolated` is the memory of the version's processes.
    pub fn new(model: &str, version: i64, isolated: &[IsolatedMemory]) -> Self {
        Self {
            model: model.to_owned(),
            version,
            owner: LedgerOwner::version(model, version),
            memory: version_memory(model, version, isolated),
            resident: ProcessMemory::own_process().resident,
        }
    }

    /// Logs what was given back, once the version's last user is gone.
    pub fn log(self) {
        let (model, version) = (&self.model, self.version);
        let left = owner_version_memory(self.owner, model, version, &[], &reported_memory());
        let resident = ProcessMemory::own_process().resident;
        tracing::info!(
            "model '{model}' version {version}: the unload gave back {}; resident memory of the server: {} bytes \
             before, {resident} bytes now",
            given_back(&self.memory.totals(), &left.totals()),
            self.resident,
        );
        if !left.entries.is_empty() {
            tracing::warn!(
                "model '{model}' version {version} is unloaded and still holds {}",
                describe_memory(&left)
            );
        }
    }
}

/// Logs what a version holds whose unload waits for its last requests.
pub fn log_in_use(model: &str, number: i64, isolated: &[IsolatedMemory]) {
    let held = describe_memory(&version_memory(model, number, isolated));
    tracing::info!(
        "model '{model}' version {number} is unloaded after its last request; it holds {held}"
    );
}

/// `10 bytes of CPU 0, 20 bytes of GPU 1`.
fn given_back(before: &Totals, left: &Totals) -> String {
    let parts = before.iter().filter_map(|(place, bytes)| {
        let bytes = bytes.saturating_sub(left.get(place).copied().unwrap_or(0));
        (bytes > 0).then(|| format!("{bytes} bytes of {} {}", place.0, place.1))
    });
    join_texts(parts)
}

/// `10 bytes of CPU 0 (outputs)`.
pub fn describe_memory(memory: &OwnerMemory) -> String {
    let part = |e: &super::MemoryEntry| {
        format!("{} bytes of {} {} ({})", e.bytes, e.memory_type, e.device, e.holder)
    };
    join_texts(memory.entries.iter().map(part))
}

fn join_texts(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "no bytes".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
#[path = "unload_tests.rs"]
mod tests;
