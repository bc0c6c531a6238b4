//! What the unload of a version gave back, for the log. What it did not is in the memory report until it is freed.

use super::entry::{OwnerMemory, Totals};
use super::owner::{of_owner_version, of_version};
use trtserver_base::ledger::{Owner, ProcessMemory};
use trtserver_plugin_host::health::IsolatedMemory;
use trtserver_plugin_host::reported_memory;

/// Memory of a version and of the server when the unload began.
pub struct UnloadReport {
    model: String,
    version: i64,
    owner: Owner,
    memory: OwnerMemory,
    resident: u64,
}

impl UnloadReport {
    /// `isolated` is the memory of the version's processes.
    pub fn new(model: &str, version: i64, isolated: &[IsolatedMemory]) -> Self {
        Self {
            model: model.to_owned(),
            version,
            owner: Owner::version(model, version),
            memory: of_version(model, version, isolated),
            resident: ProcessMemory::own().resident,
        }
    }

    /// Logs what was given back, once the version's last user is gone.
    pub fn log(self) {
        let (model, version) = (&self.model, self.version);
        let left = of_owner_version(self.owner, model, version, &[], &reported_memory());
        let resident = ProcessMemory::own().resident;
        tracing::info!(
            "model '{model}' version {version}: the unload gave back {}; resident memory of the server: {} bytes \
             before, {resident} bytes now",
            given_back(&self.memory.totals(), &left.totals()),
            self.resident,
        );
        if !left.entries.is_empty() {
            tracing::warn!(
                "model '{model}' version {version} is unloaded and still holds {}",
                list(&left)
            );
        }
    }
}

/// Logs what a version holds whose unload waits for its last requests.
pub fn log_in_use(model: &str, number: i64, isolated: &[IsolatedMemory]) {
    let held = list(&of_version(model, number, isolated));
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
    joined(parts)
}

/// `10 bytes of CPU 0 (outputs)`.
pub fn list(memory: &OwnerMemory) -> String {
    let part = |e: &super::Entry| {
        format!("{} bytes of {} {} ({})", e.bytes, e.memory_type, e.device, e.holder)
    };
    joined(memory.entries.iter().map(part))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "no bytes".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
#[path = "unload_tests.rs"]
mod tests;
