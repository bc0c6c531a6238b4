//! Memory of one owner: what the ledger has entered, what backends report beside it, and the process of an isolated model.

use super::entry::{Entry, OwnerMemory};
use trtserver_base::ledger::{HOLDERS, Owner};
use trtserver_device::Driver;
use trtserver_plugin_api::abi::types::{Memory, memory_type};
use trtserver_plugin_host::health::IsolatedMemory;
use trtserver_plugin_host::{ReportedMemory, reported_memory};
use trtserver_request::memory::Location;

/// The memory of one version of a model; `isolated` is that of its processes.
pub fn of_version(model: &str, version: i64, isolated: &[IsolatedMemory]) -> OwnerMemory {
    let owner = Owner::version(model, version);
    of_owner_version(owner, model, version, isolated, &reported_memory())
}

/// The same for an owner that was looked up, with the reports of all backends.
pub fn of_owner_version(
    owner: Owner,
    model: &str,
    version: i64,
    isolated: &[IsolatedMemory],
    reported: &[ReportedMemory],
) -> OwnerMemory {
    let mut memory = of_owner(owner);
    add_reported(&mut memory, reported, Some((model, version)));
    isolated.iter().for_each(|isolated| add_isolated(&mut memory, isolated));
    memory
}

/// What belongs to no model.
pub fn of_server(reported: &[ReportedMemory]) -> OwnerMemory {
    let mut memory = of_owner(Owner::SERVER);
    add_reported(&mut memory, reported, None);
    memory
}

/// What the ledger has entered, and what the pools of the server have.
pub fn of_owner(owner: Owner) -> OwnerMemory {
    let mut memory = OwnerMemory::default();
    let driver = Driver::get().ok();
    for holder in HOLDERS {
        let (name, drawn) = (holder.name(), owner.bytes(holder) as u64);
        memory.add(Entry::cpu(name, drawn + owner.small_bytes(holder) as u64));
        memory.budgeted += if holder.is_budgeted() { drawn } else { 0 };
        let Some(driver) = driver else { continue };
        let pinned = driver.pinned().bytes_of(owner, holder) as u64;
        memory.add(Entry::new(name, Location::PINNED, pinned));
        for device in driver.devices() {
            let bytes = device.pool().bytes_of(owner, holder) as u64;
            memory.add(Entry::new(name, Location::gpu(device.ordinal), bytes));
        }
    }
    memory
}

/// Memory that a backend has allocated by itself, and reports.
const REPORTED: &str = "reported_by_backend";

fn location(memory: Memory) -> Location {
    match memory.memory_type {
        memory_type::PINNED => Location::PINNED,
        memory_type::GPU | memory_type::MANAGED => Location::gpu(memory.device_id),
        _ => Location::CPU,
    }
}

/// The reports for that version of a model; `None`: those for no model.
fn add_reported(memory: &mut OwnerMemory, reported: &[ReportedMemory], of: Option<(&str, i64)>) {
    for report in reported {
        let reporter = report.reporter.model.as_ref().map(|(name, version)| (&**name, *version));
        if reporter == of {
            memory.add(Entry::new(REPORTED, location(report.memory), report.bytes));
        }
    }
}

/// The arenas are counted once, not as shared memory of the child, too.
fn add_isolated(memory: &mut OwnerMemory, isolated: &IsolatedMemory) {
    let private = isolated.process.resident.saturating_sub(isolated.process.shared);
    memory.add(Entry::cpu("process", private));
    memory.add(Entry::cpu("arena_inputs", isolated.inputs));
    memory.add(Entry::cpu("arena_outputs", isolated.outputs));
}
