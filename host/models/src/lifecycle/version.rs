//! One version of a model: its state, and the open version while it is ready.

use super::super::OpenVersion;
use super::super::ending_versions::EndingVersion;
use super::super::ensemble::EnsembleDependencies;
use super::super::memory::UnloadReport;
use super::usage::{UsageGuard, UsageTracker};
use crate::instance::load_progress::LoadTimes;
use arc_swap::{ArcSwap, ArcSwapOption};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use trtserver_base::clock::now_ns;
use trtserver_base::stats::VersionStats;
use trtserver_device::{GrowthResult, LoadGrowth};
use trtserver_plugin_host::health::{Health, IsolatedMemory};

/// State of one version; the numbers are those of `ModelReadyState` on the v1 wire. Transitions:
/// see [`super`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    Ready = 1,
    Unavailable = 2,
    Loading = 3,
    Unloading = 4,
}

impl VersionState {
    /// As the repository index of v2 names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "READY",
            Self::Unavailable => "UNAVAILABLE",
            Self::Loading => "LOADING",
            Self::Unloading => "UNLOADING",
        }
    }
}

/// Reason of a version that is UNAVAILABLE because it was unloaded.
pub const UNLOADED: &str = "unloaded";

/// One version of a model, served or not.
pub struct ModelVersion {
    pub number: i64,
    pub stats: Arc<VersionStats>,
    /// State and, when the version is not served, the reason.
    status: ArcSwap<(VersionState, String)>,
    /// When the state was set, CLOCK_MONOTONIC.
    since_ns: AtomicU64,
    served: ArcSwapOption<OpenVersion>,
    /// Models of an ensemble's steps; set when the ensemble is loaded.
    dependencies: OnceLock<Arc<EnsembleDependencies>>,
    /// Health of the backend's models, one for each model file: the process of an isolated model
    /// may end at any time, and instances may become broken.
    health: ArcSwap<Vec<Arc<Health>>>,
    usage: Arc<UsageTracker>,
    /// Times of the load that opened the version.
    load_times: OnceLock<LoadTimes>,
    /// What the load has taken of the memory of GPUs.
    gpu_growth: OnceLock<Vec<GrowthResult>>,
}

impl ModelVersion {
    /// A version in state LOADING.
    pub fn new(number: i64, stats: Arc<VersionStats>) -> Arc<Self> {
        Self::with(number, stats, VersionState::Loading, UsageTracker::new())
    }

    fn with(
        number: i64,
        stats: Arc<VersionStats>,
        state: VersionState,
        usage: Arc<UsageTracker>,
    ) -> Arc<Self> {
        let status = ArcSwap::from_pointee((state, String::new()));
        let since_ns = AtomicU64::new(now_ns());
        let (served, dependencies) = (ArcSwapOption::empty(), OnceLock::new());
        let (health, load_times, gpu_growth) = <_>::default();
        Arc::new(Self {
            number,
            stats,
            status,
            since_ns,
            served,
            dependencies,
            health,
            usage,
            load_times,
            gpu_growth,
        })
    }

    /// This version for a new entry that does not serve it. It shares the usage tracker: a version
    /// that the old entry serves is UNLOADING until its last user is gone.
    pub(crate) fn unserved_copy(&self) -> Arc<Self> {
        let state = match self.is_loaded() {
            true => VersionState::Unloading,
            false => self.status.load().0,
        };
        let copy = Self::with(self.number, Arc::clone(&self.stats), state, Arc::clone(&self.usage));
        if state == VersionState::Unavailable {
            copy.set_unavailable(UNLOADED.to_owned());
        }
        if !self.is_loaded() {
            copy.since_ns.store(self.since_ns.load(Relaxed), Relaxed);
        }
        copy
    }

    /// This version for a new entry that leaves it open as `open`, which counts in `stats`.
    pub(super) fn kept(&self, open: Arc<OpenVersion>, stats: Arc<VersionStats>) -> Arc<Self> {
        let usage = Arc::clone(&self.usage);
        let copy = Self::with(self.number, stats, VersionState::Ready, usage);
        copy.served.store(Some(open));
        copy.since_ns.store(self.since_ns.load(Relaxed), Relaxed);
        copy.health.store(self.health.load_full());
        self.load_times().into_iter().for_each(|times| copy.set_load_times(times));
        self.gpu_growth.get().into_iter().for_each(|growth| copy.set_gpu_growth(growth.clone()));
        copy
    }

    pub(crate) fn set_ready(&self, served: Arc<OpenVersion>) {
        self.served.store(Some(served));
        self.set_state(VersionState::Ready, String::new());
    }

    pub(crate) fn set_unavailable(&self, reason: String) {
        self.set_state(VersionState::Unavailable, reason);
        self.served.store(None);
    }

    pub(crate) fn set_unloading(&self, model: &str) {
        self.set_state(VersionState::Unloading, String::new());
        self.log_unload(model);
        self.retire();
        self.served.store(None);
    }

    fn set_state(&self, state: VersionState, reason: String) {
        self.since_ns.store(now_ns(), Relaxed);
        self.status.store(Arc::new((state, reason)));
    }

    /// Since when it is in the state that [`ModelVersion::status`] returns, in nanoseconds of
    /// CLOCK_MONOTONIC.
    pub fn since_ns(&self) -> u64 {
        let own = self.since_ns.load(Relaxed);
        if !self.is_loaded() {
            return own;
        }
        let steps = self.dependencies.get().and_then(|steps| steps.unmet_since_ns());
        let failed = || self.health.load().iter().find_map(|health| health.failed_since_ns());
        steps.or_else(failed).unwrap_or(own).max(own)
    }

    /// Logs that the version is unloaded when its last user is gone.
    pub(super) fn log_unload(&self, model: &str) {
        let number = self.number;
        let before = UnloadReport::new(model, number, &self.isolated_memory());
        let text = format!("successfully unloaded '{model}' version {number}");
        self.usage.when_unused(move || {
            tracing::info!("{text}");
            before.log();
        });
    }

    /// Registers a user of this version, which is closed when its last user is gone.
    pub fn start_use(&self) -> Arc<UsageGuard> {
        UsageGuard::new(&self.usage)
    }

    pub(super) fn usage(&self) -> &UsageTracker {
        &self.usage
    }

    /// State and, when the version is not served, the reason.
    pub fn status(&self) -> Arc<(VersionState, String)> {
        let status = self.status.load_full();
        match status.0 {
            VersionState::Unloading if self.usage.is_unused() => {
                Arc::new((VersionState::Unavailable, UNLOADED.to_owned()))
            }
            VersionState::Ready => match self.failure() {
                Some(reason) => Arc::new((VersionState::Unavailable, reason)),
                None => status,
            },
            _ => status,
        }
    }

    /// State and reason as the last load left them.
    pub(crate) fn loaded_as(&self) -> (VersionState, String) {
        (**self.status.load()).clone()
    }

    /// Loaded, even if it cannot serve now: see [`ModelVersion::is_ready`].
    pub fn is_loaded(&self) -> bool {
        self.status.load().0 == VersionState::Ready
    }

    /// Loaded, and its instances and its process can execute.
    pub fn is_sound(&self) -> bool {
        let failed = || self.health.load().iter().any(|health| health.failure().is_some());
        self.is_loaded() && !failed()
    }

    /// Loaded, with its process running and the models of its steps served.
    pub fn is_ready(&self) -> bool {
        self.is_loaded() && self.failure().is_none()
    }

    /// Unloading or unloaded.
    pub fn is_unloaded(&self) -> bool {
        let status = self.status.load();
        status.0 == VersionState::Unloading
            || (status.0 == VersionState::Unavailable && status.1 == UNLOADED)
    }

    /// Unloaded, and its last user is gone.
    pub fn is_fully_unloaded(&self) -> bool {
        let status = self.status();
        status.0 == VersionState::Unavailable && status.1 == UNLOADED
    }

    /// Not served on request: this version was unloaded, or the models of its steps were.
    pub(crate) fn is_unloaded_by_request(&self) -> bool {
        let steps = self.dependencies.get();
        self.is_unloaded() || (self.is_loaded() && steps.is_some_and(|s| s.unloaded_by_request()))
    }

    /// Why the version does not serve although it is loaded.
    fn failure(&self) -> Option<String> {
        let unmet = self.dependencies.get().and_then(|steps| steps.unmet());
        unmet.or_else(|| self.health.load().iter().find_map(|health| health.failure()))
    }

    /// Ends an isolated model's process within its grace period, even if requests still hold it.
    pub(super) fn retire(&self) {
        self.health.load().iter().for_each(|health| health.begin_unload());
    }

    pub(super) fn is_sequence(&self) -> bool {
        self.served().is_some_and(|open| open.scheduler.is_sequence())
    }

    /// This version for the list of replaced ones, if it executes sequences.
    pub(super) fn ending(&self, until: Instant) -> Option<EndingVersion> {
        let open = self.served().filter(|_| self.is_sequence())?;
        Some(EndingVersion { open, health: self.health.load_full(), until })
    }

    pub(super) fn set_health(&self, health: Vec<Arc<Health>>) {
        self.health.store(Arc::new(health));
    }

    /// Memory of its isolated processes.
    pub fn isolated_memory(&self) -> Vec<IsolatedMemory> {
        self.health.load().iter().filter_map(|health| health.memory()).collect()
    }

    pub(super) fn set_load_times(&self, times: LoadTimes) {
        let _ = self.load_times.set(times);
    }

    pub(super) fn set_gpu_growth(&self, growth: Vec<GrowthResult>) {
        let _ = self.gpu_growth.set(growth);
    }

    /// What the load has taken of the memory of GPUs, as far as it is known.
    pub fn gpu_growth(&self) -> Vec<LoadGrowth> {
        let known = self.gpu_growth.get().into_iter().flatten();
        known.filter_map(|result| result.get().copied()).collect()
    }

    /// How long the steps of its load took; `None` if it was not opened.
    pub fn load_times(&self) -> Option<LoadTimes> {
        self.load_times.get().copied()
    }

    /// What serves it, if it is loaded.
    pub fn served(&self) -> Option<Arc<OpenVersion>> {
        self.served.load_full()
    }

    /// Makes it READY only while `dependencies` are served.
    pub(crate) fn set_dependencies(&self, dependencies: Arc<EnsembleDependencies>) {
        let _ = self.dependencies.set(dependencies);
    }
}
