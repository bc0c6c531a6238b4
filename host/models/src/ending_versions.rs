//! Replaced versions that stay open for a time: the sequences that began on them end there.

use super::{LookupError, OpenVersion};
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::time::Instant;
use trtserver_plugin_host::health::Health;
use trtserver_request::{CorrelationId, RequestSequence};

/// The replaced versions of one model. All its entries share them.
#[derive(Default)]
pub struct EndingVersions {
    /// `None`, almost always, when there are none.
    versions: ArcSwapOption<Vec<EndingVersion>>,
}

/// A replaced version with sequences.
#[derive(Clone)]
pub struct EndingVersion {
    pub open: Arc<OpenVersion>,
    /// Isolated processes, which are ended afterwards.
    pub health: Arc<Vec<Arc<Health>>>,
    /// Sequences that have not ended then are lost.
    pub until: Instant,
}

impl EndingVersions {
    /// The version on which `sequence` began, if it was replaced since; `exact`: only the one with
    /// this number.
    pub fn find_for_sequence(
        &self,
        sequence: &RequestSequence,
        exact: Option<i64>,
    ) -> Option<Arc<OpenVersion>> {
        let versions = self.versions.load();
        let mut versions = versions.as_ref()?.iter().map(|version| &version.open);
        let began = |open: &&Arc<OpenVersion>| {
            exact.is_none_or(|number| number == open.version)
                && open.scheduler.has_sequence(sequence)
        };
        versions.find(began).cloned()
    }

    /// A version that requests name by its number, for requests that continue a sequence.
    pub fn find(&self, number: i64) -> Option<Arc<OpenVersion>> {
        let versions = self.versions.load();
        let mut versions = versions.as_ref()?.iter().map(|version| &version.open);
        versions.find(|open| open.version == number)?.for_begun_sequences()
    }

    pub fn add(&self, version: EndingVersion) {
        self.versions.rcu(|versions| {
            let mut all = versions.as_deref().cloned().unwrap_or_default();
            all.push(version.clone());
            Some(Arc::new(all))
        });
    }

    /// Number of sequences that have not ended.
    pub fn sequences(&self) -> usize {
        let versions = self.versions.load();
        let versions = versions.iter().flat_map(|all| all.iter());
        versions.map(|version| version.open.scheduler.active_sequences()).sum()
    }

    /// Closes versions whose sequences have ended or whose time has passed at `now`. True when none
    /// is left.
    pub fn close_ended(&self, now: Instant) -> bool {
        let Some(all) = self.versions.load_full() else { return true };
        // This list has the only reference, so that no request of a sequence is on its way into the
        // queue.
        let unused = |v: &EndingVersion| Arc::strong_count(&v.open) == 1;
        let ended = |v: &EndingVersion| v.open.scheduler.active_sequences() == 0 && unused(v);
        let closed: Vec<_> = all.iter().filter(|v| ended(v) || now >= v.until).collect();
        if closed.is_empty() {
            return false;
        }
        for version in &closed {
            let lost = version.open.scheduler.active_sequences();
            if lost > 0 {
                let (name, number) = (&version.open.name, version.open.version);
                tracing::warn!(
                    "{lost} sequences of '{name}' version {number}, which was replaced, have not \
                     ended in time and are lost"
                );
            }
        }
        let is_closed = |v: &&EndingVersion| closed.iter().any(|c| Arc::ptr_eq(&c.open, &v.open));
        self.versions.rcu(|versions| {
            let all = versions.iter().flat_map(|all| all.iter());
            // Versions that were added meanwhile stay.
            let all: Vec<_> = all.filter(|v| !is_closed(v)).cloned().collect();
            (!all.is_empty()).then(|| Arc::new(all))
        });
        closed.iter().flat_map(|v| v.health.iter()).for_each(|health| health.begin_unload());
        self.versions.load().is_none()
    }

    /// Closes all: the model is unloaded or the server stops.
    pub fn close_all(&self) {
        for version in self.versions.swap(None).iter().flat_map(|all| all.iter()) {
            version.health.iter().for_each(|health| health.begin_unload());
        }
    }
}

impl OpenVersion {
    /// The replaced version on which `sequence` began, if a request that found this version
    /// continues it. `exact`: the request names the version.
    pub(super) fn begun_on(
        &self,
        sequence: &RequestSequence,
        exact: bool,
    ) -> Option<Arc<OpenVersion>> {
        if sequence.id == CorrelationId::None || sequence.start {
            return None;
        }
        let exact = exact.then_some(self.version);
        let began = self.ending.find_for_sequence(sequence, exact)?;
        // An id that was used for two sequences belongs to the later one.
        (!self.scheduler.has_sequence(sequence)).then_some(began)
    }

    /// Refuses what a version that was deselected does not execute: all but what is left of its
    /// sequences.
    pub fn require_selected(&self, sequence: &RequestSequence) -> Result<(), LookupError> {
        match self.for_begun_sequences && !self.scheduler.has_sequence(sequence) {
            true => Err(LookupError::VersionNotReady(self.name.to_string(), self.version)),
            false => Ok(()),
        }
    }
}
