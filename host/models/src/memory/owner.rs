//! Memory of one owner: what the ledger has entered, what backends report beside it, and the
//! process of an isolated model.

use super::entry::{MemoryEntry, OwnerMemory};
use trtserver_base::ledger::{HOLDERS, LedgerOwner};
use trtserver_device::GpuDriver;
use trtserver_plugin_api::abi::types::{Memory, memory_type};
use trtserver_plugin_host::health::IsolatedMemory;
use trtserver_plugin_host::{ReportedMemory, reported_memory};
use trtserver_request::memory::MemoryLocation;

/// The memory of one version of a model; `isolated` is that of its processes.
pub fn version_memory(model: &str, version: i64, isolated: &[IsolatedMemory]) -> OwnerMemory {
    let owner = LedgerOwner::version(model, version);
    owner_version_memory(owner, model, version, isolated, &reported_memory())
}

/// The same for an owner that was looked up, with the reports of all backends.
pub fn owner_version_memory(
    owner: LedgerOwner,
    model: &str,
    version: i64,
    isolated: &[IsolatedMemory],
    reported: &[ReportedMemory],
) -> OwnerMemory {
    let mut memory = owner_memory(owner);
    add_reported(&mut memory, reported, Some((model, version)));
    isolated.iter().for_each(|isolated| add_isolated(&mut memory, isolated));
    memory
}

/// What belongs to no model.
pub fn server_memory(reported: &[ReportedMemory]) -> OwnerMemory {
    let mut memory = owner_memory(LedgerOwner::SERVER);
    add_reported(&mut memory, reported, None);
    memory
}

/// What the ledger has entered, and what the pools of the server have.
pub fn owner_memory(owner: LedgerOwner) -> OwnerMemory {
    let mut memory = OwnerMemory::default();
    let driver = GpuDriver::get().ok();
    for holder in HOLDERS {
        let (name, drawn) = (holder.name(), owner.bytes(holder) as u64);
        memory.add(MemoryEntry::cpu(name, drawn + owner.small_bytes(holder) as u64));
        memory.budgeted += if holder.is_budgeted() { drawn } else { 0 };
        let Some(driver) = driver else { continue };
        let pinned = driver.pinned().owner_bytes(owner, holder) as u64;
        memory.add(MemoryEntry::new(name, MemoryLocation::PINNED, pinned));
        for device in driver.devices() {
            let bytes = device.pool().owner_bytes(owner, holder) as u64;
            memory.add(MemoryEntry::new(name, MemoryLocation::gpu(device.ordinal), bytes));
        }
    }
    memory
}

/// Memory that a backend has allocated by itself, and reports.
const REPORTED: &str = "reported_by_backend";

fn memory_location(memory: Memory) -> MemoryLocation {
    match memory.memory_type {
        memory_type::PINNED => MemoryLocation::PINNED,
        memory_type::GPU | memory_type::MANAGED => MemoryLocation::gpu(memory.device_id),
        _ => MemoryLocation::CPU,
    }
}

/// The reports for that version of a model; `None`: those for no model.
fn add_reported(memory: &mut OwnerMemory, reported: &[ReportedMemory], of: Option<(&str, i64)>) {
    for report in reported {
        let reporter = report.reporter.model.as_ref().map(|(name, version)| (&**name, *version));
        if reporter == of {
            memory.add(MemoryEntry::new(REPORTED, memory_location(report.memory), report.bytes));
        }
    }
}

/// The arenas are counted once, not as shared memory of the child, too.
fn add_isolated(memory: &mut OwnerMemory, isolated: &IsolatedMemory) {
    let private = isolated.process.resident.saturating_sub(isolated.process.shared);
    memory.add(MemoryEntry::cpu("process", private));
    memory.add(MemoryEntry::cpu("arena_inputs", isolated.inputs));
    memory.add(MemoryEntry::cpu("arena_outputs", isolated.outputs));
}
