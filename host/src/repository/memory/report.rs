//! Makes the memory report from the ledger, the model table, the pool of large blocks, the allocator and the kernel.

use crate::budget::{model_memory, request_memory};
use crate::heap::{self, HeapUsage};
use crate::ledger::{self, HOLDERS, Holder, Owner, OwnerName, ProcessMemory};
use crate::repository::{ModelTable, VersionState};
use crate::request::pool::{self, PoolUsage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Memory of one kind on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is used for.
    pub holder: &'static str,
    /// `CPU`, `CPU_PINNED` or `GPU`, as `memory_usage` of the statistics names it.
    pub memory_type: &'static str,
    pub device: i64,
    pub bytes: u64,
}

/// Memory of a model version, of a model, or of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerMemory {
    /// Without entries of no bytes.
    pub entries: Vec<Entry>,
    /// The part that is drawn from the memory budget.
    pub budgeted: u64,
}

/// A version of a model, or (without a version) what all its versions share.
#[derive(Clone, Debug)]
pub struct ModelMemory {
    pub model: Arc<str>,
    pub version: Option<i64>,
    /// `None` once the version is not in the model table any more.
    pub state: Option<VersionState>,
    pub memory: OwnerMemory,
}

/// Sums by memory type and device.
pub type Totals = BTreeMap<(&'static str, i64), u64>;

/// See the module text.
pub struct MemoryReport {
    pub process: ProcessMemory,
    /// `None` where the allocator does not tell.
    pub heap: Option<HeapUsage>,
    pub pool: PoolUsage,
    /// The memory budget: its limit, bytes in use, and their peak.
    pub limit: u64,
    pub in_use: u64,
    pub peak: u64,
    /// Blocks of loaded models that no request pays for.
    pub model_memory: u64,
    /// What belongs to no model, or to a request whose model is not known yet.
    pub server: OwnerMemory,
    pub models: Vec<ModelMemory>,
}

impl MemoryReport {
    /// Reads all counters. They change meanwhile: sums are exact while no request is in progress.
    pub fn new(models: &ModelTable) -> Self {
        let budget = request_memory();
        Self {
            process: ProcessMemory::own(),
            heap: heap::usage(),
            pool: pool::usage(),
            limit: budget.limit() as u64,
            in_use: budget.in_use() as u64,
            peak: budget.peak() as u64,
            model_memory: model_memory().in_use() as u64,
            server: of_owner(Owner::SERVER),
            models: models_of(models),
        }
    }

    pub fn totals(&self) -> Totals {
        let all = self.models.iter().map(|model| &model.memory).chain([&self.server]);
        totals(all.flat_map(|memory| &memory.entries))
    }
}

impl OwnerMemory {
    pub fn totals(&self) -> Totals {
        totals(&self.entries)
    }
}

fn totals<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Totals {
    let mut totals = Totals::new();
    for entry in entries {
        *totals.entry((entry.memory_type, entry.device)).or_default() += entry.bytes;
    }
    totals
}

/// Every loaded version, and everything else that holds memory.
fn models_of(models: &ModelTable) -> Vec<ModelMemory> {
    let mut states = BTreeMap::new();
    for model in models.all().into_values() {
        for version in model.versions.values() {
            let name = OwnerName { model: Arc::clone(&model.name), version: Some(version.number) };
            states.insert(name, version.status().0);
        }
    }
    let owners = ledger::named_owners().into_iter().filter_map(|(name, owner)| {
        let (memory, state) = (of_owner(owner), states.get(&name).copied());
        let loaded = state.is_some_and(|state| state != VersionState::Unavailable);
        let OwnerName { model, version } = name;
        (loaded || !memory.entries.is_empty()).then_some(ModelMemory {
            model,
            version,
            state,
            memory,
        })
    });
    owners.collect()
}

/// The memory of one version of a model.
pub fn of_version(model: &str, version: i64) -> OwnerMemory {
    of_owner(Owner::version(model, version))
}

fn of_owner(owner: Owner) -> OwnerMemory {
    let held = HOLDERS.map(|holder| (holder, owner.bytes(holder) as u64));
    let cpu = |holder: &Holder, bytes| Entry {
        holder: holder.name(),
        memory_type: "CPU",
        device: 0,
        bytes,
    };
    let entries = held.iter().filter(|(_, bytes)| *bytes > 0);
    let budgeted = held.iter().filter(|(holder, _)| holder.is_budgeted());
    OwnerMemory {
        entries: entries.map(|(holder, bytes)| cpu(holder, *bytes)).collect(),
        budgeted: budgeted.map(|(_, bytes)| bytes).sum(),
    }
}
