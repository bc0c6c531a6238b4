//! One version of a model: its state, and what serves it.

use super::Served;
use super::closing::{Gate, Open};
use super::ensemble::Needs;
use crate::plugin::isolated::Health;
use crate::stats::VersionStats;
use arc_swap::{ArcSwap, ArcSwapOption};
use std::sync::{Arc, OnceLock};

/// State of one version; the numbers are those of `ModelReadyState` on the v1 wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    Ready = 1,
    Unavailable = 2,
    Loading = 3,
    Unloading = 4,
}

/// What a version says of itself that was taken out of service in good order.
pub const UNLOADED: &str = "unloaded";

/// One version of a model, served or not.
pub struct Version {
    pub number: i64,
    pub stats: Arc<VersionStats>,
    pub(super) status: ArcSwap<(VersionState, String)>,
    pub(super) served: ArcSwapOption<Served>,
    /// What an ensemble needs, from its load on.
    needs: OnceLock<Arc<Needs>>,
    /// Of a model that runs in a process of its own.
    health: ArcSwapOption<Health>,
    pub(super) gate: Arc<Gate>,
}

impl Version {
    pub fn new(number: i64, stats: Arc<VersionStats>) -> Arc<Self> {
        Self::with(number, stats, VersionState::Loading, Gate::new())
    }

    fn with(
        number: i64,
        stats: Arc<VersionStats>,
        state: VersionState,
        gate: Arc<Gate>,
    ) -> Arc<Self> {
        let status = ArcSwap::from_pointee((state, String::new()));
        let (served, needs) = (ArcSwapOption::empty(), OnceLock::new());
        let health = ArcSwapOption::empty();
        Arc::new(Self { number, stats, status, served, needs, health, gate })
    }

    /// What is to be seen of this version in an entry that no longer serves it.
    pub(super) fn retired(&self) -> Arc<Self> {
        let state = match self.is_loaded() {
            true => VersionState::Unloading,
            false => self.status.load().0,
        };
        let retired =
            Self::with(self.number, Arc::clone(&self.stats), state, Arc::clone(&self.gate));
        if state == VersionState::Unavailable {
            retired.status.store(Arc::new((state, UNLOADED.to_owned())));
        }
        retired
    }

    /// Held by what serves this version.
    pub fn open(&self) -> Arc<Open> {
        Open::new(&self.gate)
    }

    /// State and, when it is not served, why.
    pub fn status(&self) -> Arc<(VersionState, String)> {
        let status = self.status.load_full();
        match status.0 {
            VersionState::Unloading if self.gate.is_closed() => {
                Arc::new((VersionState::Unavailable, UNLOADED.to_owned()))
            }
            VersionState::Ready => match self.broken() {
                Some(why) => Arc::new((VersionState::Unavailable, why)),
                None => status,
            },
            _ => status,
        }
    }

    /// Taken out of service in good order, or on the way there.
    pub fn is_unloaded(&self) -> bool {
        let status = self.status.load();
        status.0 == VersionState::Unloading
            || (status.0 == VersionState::Unavailable && status.1 == UNLOADED)
    }

    pub fn is_ready(&self) -> bool {
        self.is_loaded() && self.broken().is_none()
    }

    /// Why it does not serve though it is loaded.
    fn broken(&self) -> Option<String> {
        let needs = self.needs.get().and_then(|needs| needs.broken());
        needs.or_else(|| self.health.load().as_deref()?.broken())
    }

    /// No further request comes, and what serves it is not waited for longer than a model gets to end.
    pub(super) fn retire(&self) {
        if let Some(health) = self.health.load().as_deref() {
            health.retire();
        }
    }

    /// Where to see whether it serves, if it may stop doing so on its own.
    pub(super) fn watch(&self, health: Option<Arc<Health>>) {
        self.health.store(health);
    }

    /// Loaded, whatever became of the models that it needs.
    pub fn is_loaded(&self) -> bool {
        self.status.load().0 == VersionState::Ready
    }

    /// Unloaded, and nothing of it is open any more.
    pub fn is_gone(&self) -> bool {
        let status = self.status();
        status.0 == VersionState::Unavailable && status.1 == UNLOADED
    }

    /// Not served because somebody asked for that: this one unloaded, or what it needs.
    pub(super) fn is_idle(&self) -> bool {
        self.is_unloaded() || (self.is_loaded() && self.needs.get().is_some_and(|n| n.is_idle()))
    }

    /// What serves it, if it is loaded.
    pub fn served(&self) -> Option<Arc<Served>> {
        self.served.load_full()
    }

    /// It serves only as long as what it needs is served.
    pub(super) fn depends_on(&self, needs: Arc<Needs>) {
        let _ = self.needs.set(needs);
    }
}
