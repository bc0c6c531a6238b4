//! Makes the memory report from the ledger, the model table, the pool of large blocks, the
//! allocator and the kernel.

use super::entry::{MemoryEntry, OwnerMemory, Totals, sum_memory};
use super::{measured, owner};
use crate::{ModelTable, VersionState};
use std::collections::BTreeMap;
use std::sync::Arc;
use trtserver_base::budget::{model_memory, request_memory};
use trtserver_base::heap::HeapUsage;
use trtserver_base::ledger;
use trtserver_base::ledger::{LedgerHolder, OwnerName, ProcessMemory};
use trtserver_device::{GpuDriver, LoadGrowth, PoolBytes};
use trtserver_plugin_host::{ReportedMemory, reported_memory};
use trtserver_request::memory::MemoryLocation;
use trtserver_request::pool;
use trtserver_request::pool::PoolUsage;

/// A version of a model, or (without a version) what all its versions share.
#[derive(Clone, Debug)]
pub struct ModelMemory {
    pub model: Arc<str>,
    pub version: Option<i64>,
    /// `None` once the version is not in the model table any more.
    pub state: Option<VersionState>,
    pub memory: OwnerMemory,
    /// Processes of an isolated model.
    pub processes: Vec<ProcessMemory>,
    /// What the load has taken of GPUs. Not part of `memory`, most of whose entries for GPUs it
    /// contains.
    pub gpu_at_load: Vec<LoadGrowth>,
}

/// Memory of the server and of each model version, in bytes, at the time of the report.
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
    /// Reads all counters but those of the allocator, which may take milliseconds to read. They
    /// change meanwhile: sums are exact while no request is in progress.
    pub fn new(models: &ModelTable, heap: Option<HeapUsage>) -> Self {
        let budget = request_memory();
        let reported = reported_memory();
        let mut server = owner::server_memory(&reported);
        add_device_pools(&mut server);
        Self {
            process: ProcessMemory::own_process(),
            heap,
            pool: pool::read_pool_usage(),
            limit: budget.limit() as u64,
            in_use: budget.in_use() as u64,
            peak: budget.peak() as u64,
            model_memory: model_memory().in_use() as u64,
            server,
            models: report_models(models, &reported),
        }
    }

    pub fn totals(&self) -> Totals {
        let all = self.models.iter().map(|model| &model.memory).chain([&self.server]);
        sum_memory(all.flat_map(|memory| &memory.entries))
    }
}

/// Every loaded version, and everything else that holds memory.
fn report_models(models: &ModelTable, reported: &[ReportedMemory]) -> Vec<ModelMemory> {
    let (all, inputs) = (models.all(), measured::small_inputs(models));
    let mut known = BTreeMap::new();
    for model in all.values() {
        for version in model.versions.values() {
            let name = OwnerName { model: Arc::clone(&model.name), version: Some(version.number) };
            known.insert(name, Arc::clone(version));
        }
    }
    let owners = ledger::named_owners().into_iter().filter_map(|(name, owner)| {
        let version = known.get(&name);
        let state = version.map(|version| version.status().0);
        let isolated = version.map(|version| version.isolated_memory()).unwrap_or_default();
        let mut memory = match name.version {
            Some(number) => {
                owner::owner_version_memory(owner, &name.model, number, &isolated, reported)
            }
            None => owner::owner_memory(owner),
        };
        let small_inputs = inputs.get(&owner).copied().unwrap_or(0);
        memory.add(MemoryEntry::cpu(LedgerHolder::Input.name(), small_inputs));
        if let (None, Some(model)) = (name.version, all.get(&*name.model)) {
            measured::add_parsed(&mut memory, model);
        }
        let loaded = state.is_some_and(|state| state != VersionState::Unavailable);
        let gpu_at_load = version.map(|version| version.gpu_growth()).unwrap_or_default();
        let processes = isolated.into_iter().map(|isolated| isolated.process).collect();
        let OwnerName { model, version } = name;
        (loaded || !memory.entries.is_empty()).then_some(ModelMemory {
            model,
            version,
            state,
            memory,
            processes,
            gpu_at_load,
        })
    });
    owners.collect()
}

/// What the pools on GPUs and of pinned memory have taken from the driver and no model uses.
fn add_device_pools(memory: &mut OwnerMemory) {
    let Ok(driver) = GpuDriver::get() else { return };
    let free = |pool: PoolBytes| pool.held.saturating_sub(pool.used);
    memory.add(MemoryEntry::new(
        "pinned_pool",
        MemoryLocation::PINNED,
        free(driver.pinned().bytes()),
    ));
    for device in driver.devices() {
        let free = free(device.pool().bytes());
        memory.add(MemoryEntry::new("device_pool", MemoryLocation::gpu(device.ordinal), free));
    }
}
