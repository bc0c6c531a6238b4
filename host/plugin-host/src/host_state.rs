//! What the functions that backends call reach: the interface passes them no pointer to the host.

use crate::batch::cancel_notifier::{ThreadStarter, start_starter};
use crate::batch::frame::IdleFrames;
use crate::batch::slot::Slots;
use crate::host_api::metric::MetricFamilies;
use crate::host_api::process::EndProcess;
use crate::host_api::reported_memory::MemoryReports;
use crate::host_api::scope::BackendMemories;
use crate::nested::ServerModels;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{LazyLock, OnceLock};
use trtserver_plugin_api::abi::types::level;

/// Process-wide: functions of the C interface, and handles that backends may use at any time, lead
/// here.
pub(crate) static HOST: HostState = HostState {
    log_level: AtomicU32::new(level::INFO),
    end_process: OnceLock::new(),
    server: OnceLock::new(),
    metrics: MetricFamilies::new(),
    memory: BackendMemories::new(),
    reports: MemoryReports::new(),
    next_id: AtomicU64::new(1),
    slots: Slots::new(),
    frames: Mutex::new(Vec::new()),
    cancel_starter: LazyLock::new(start_starter),
};

/// See [`HOST`].
pub(crate) struct HostState {
    /// Log level of backends, which load it without a call.
    pub log_level: AtomicU32,
    /// Set in the process of an isolated model.
    pub end_process: OnceLock<EndProcess>,
    /// The models that nested requests reach.
    pub server: OnceLock<Box<dyn ServerModels>>,
    pub metrics: MetricFamilies,
    pub memory: BackendMemories,
    pub reports: MemoryReports,
    /// For scopes, memory handles and nested streams.
    pub next_id: AtomicU64,
    /// Handles of requests point to slots, which are never freed.
    pub slots: Slots,
    /// Unused frames. Handles of batches point to frames, which are never freed.
    pub frames: Mutex<Vec<IdleFrames>>,
    pub cancel_starter: ThreadStarter,
}
