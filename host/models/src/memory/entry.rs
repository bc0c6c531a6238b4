//! Memory of one kind on one device, and sums of it.

use std::collections::BTreeMap;
use trtserver_request::memory::{MemoryLocation, MemoryType};

/// Memory of one kind on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEntry {
    /// What it is used for.
    pub holder: &'static str,
    /// `CPU`, `CPU_PINNED` or `GPU`, as `memory_usage` of the statistics names it.
    pub memory_type: &'static str,
    pub device: i64,
    pub bytes: u64,
}

/// Sums by memory type and device.
pub type Totals = BTreeMap<(&'static str, i64), u64>;

/// Memory of a model version, of a model, or of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerMemory {
    /// Entries that have bytes; others are left out.
    pub entries: Vec<MemoryEntry>,
    /// The part that is drawn from the memory budget.
    pub budgeted: u64,
}

impl MemoryEntry {
    pub fn new(holder: &'static str, location: MemoryLocation, bytes: u64) -> Self {
        let memory_type = match location.memory_type {
            MemoryType::Cpu => "CPU",
            MemoryType::Pinned => "CPU_PINNED",
            MemoryType::Gpu => "GPU",
        };
        Self { holder, memory_type, device: location.device_id.into(), bytes }
    }

    pub fn cpu(holder: &'static str, bytes: u64) -> Self {
        Self::new(holder, MemoryLocation::CPU, bytes)
    }
}

impl OwnerMemory {
    /// Adds memory that is not drawn from the memory budget. Entries of one holder and location are
    /// summed up.
    pub fn add(&mut self, entry: MemoryEntry) {
        let MemoryEntry { holder, memory_type, device, bytes } = entry;
        let same = |e: &&mut MemoryEntry| {
            (e.holder, e.memory_type, e.device) == (holder, memory_type, device)
        };
        match self.entries.iter_mut().find(same) {
            _ if bytes == 0 => {}
            Some(known) => known.bytes += bytes,
            None => self.entries.push(entry),
        }
    }

    /// Sums by memory type and device.
    pub fn totals(&self) -> Totals {
        sum_memory(&self.entries)
    }

    /// All bytes, on all devices.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }
}

pub fn sum_memory<'a>(entries: impl IntoIterator<Item = &'a MemoryEntry>) -> Totals {
    let mut totals = Totals::new();
    for entry in entries {
        *totals.entry((entry.memory_type, entry.device)).or_default() += entry.bytes;
    }
    totals
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
