//! Memory of one owner: what the ledger has entered, what backends report beside it, and the process of an isolated model.

use super::entry::{Entry, OwnerMemory};
use crate::ledger::{HOLDERS, Owner};
use crate::plugin::isolated::IsolatedMemory;
use crate::plugin::reported_memory;
use crate::request::memory::Location;
use trtserver_plugin_api::abi::types::{Memory, memory_type};

/// The memory of one version of a model; `isolated` is that of its processes.
pub fn of_version(model: &str, version: i64, isolated: &[IsolatedMemory]) -> OwnerMemory {
    let mut memory = of_model(Owner::version(model, version), model, version);
    isolated.iter().for_each(|isolated| add_isolated(&mut memory, isolated));
    memory
}

/// The same without the process of an isolated model.
pub fn of_model(owner: Owner, model: &str, version: i64) -> OwnerMemory {
    let mut memory = of_owner(owner);
    let is_its = |of: &Option<(std::sync::Arc<str>, i64)>| {
        of.as_ref().is_some_and(|(name, number)| &**name == model && *number == version)
    };
    for report in reported_memory().iter().filter(|report| is_its(&report.reporter.model)) {
        memory.add(Entry::new(REPORTED, location(report.memory), report.bytes));
    }
    memory
}

/// What belongs to no model.
pub fn of_server() -> OwnerMemory {
    let mut memory = of_owner(Owner::SERVER);
    for report in reported_memory().iter().filter(|report| report.reporter.model.is_none()) {
        memory.add(Entry::new(REPORTED, location(report.memory), report.bytes));
    }
    memory
}

/// What the ledger has entered.
pub fn of_owner(owner: Owner) -> OwnerMemory {
    let mut memory = OwnerMemory::default();
    for holder in HOLDERS {
        let bytes = owner.bytes(holder) as u64;
        memory.add(Entry::cpu(holder.name(), bytes));
        memory.budgeted += if holder.is_budgeted() { bytes } else { 0 };
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

/// The arenas are counted once, not as shared memory of the child, too.
fn add_isolated(memory: &mut OwnerMemory, isolated: &IsolatedMemory) {
    let private = isolated.process.resident.saturating_sub(isolated.process.shared);
    memory.add(Entry::cpu("process", private));
    memory.add(Entry::cpu("arena_inputs", isolated.inputs));
    memory.add(Entry::cpu("arena_outputs", isolated.outputs));
}
