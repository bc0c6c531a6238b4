//! Readiness of models: the rules of strict readiness and of `--ready-models`; models that are not
//! ready, with reason and time.

use super::{Model, ModelTable, ModelVersion, VersionState};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A model, or one of its versions, that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadyModel {
    pub model: String,
    /// `None`: the model as a whole.
    pub version: Option<i64>,
    /// `None`: the model is not in the table.
    pub state: Option<VersionState>,
    pub reason: String,
    /// In nanoseconds of CLOCK_MONOTONIC; `None` if it never was in the table.
    pub since_ns: Option<u64>,
    /// The server is not ready because of it.
    pub required: bool,
}

impl Model {
    /// Strict readiness: every version is READY, or was unloaded by request. A model whose
    /// configuration file is missing or cannot be read does not count.
    pub(super) fn is_strictly_ready(&self) -> bool {
        let is_ready = |v: &Arc<ModelVersion>| v.is_ready() || v.is_unloaded_by_request();
        self.load_info.unreadable.load(Ordering::Relaxed)
            || self.refusal.is_none()
                && !self.versions.is_empty()
                && self.versions.values().all(is_ready)
    }

    /// The readiness of a model that `--ready-models` names: the same, and at least one version is
    /// READY.
    pub(super) fn is_ready_as_required(&self) -> bool {
        self.is_strictly_ready() && self.versions.values().any(|v| v.is_ready())
    }

    /// When it ceased to be ready, in nanoseconds of CLOCK_MONOTONIC. For a refused configuration,
    /// when its entry in the table was created.
    pub(super) fn unready_since_ns(&self) -> u64 {
        let unready = self.versions.values().filter(|v| !v.is_ready());
        let since = unready.map(|v| v.since_ns()).max();
        since.filter(|_| self.refusal.is_none()).unwrap_or(self.created_ns())
    }

    /// Its versions that are not ready, or itself. Not empty for a model that is not ready by the
    /// rules above.
    fn unready(&self, required: bool) -> Vec<UnreadyModel> {
        let unready = |version, state, reason, since_ns| UnreadyModel {
            model: self.name.to_string(),
            version,
            state: Some(state),
            reason,
            since_ns: Some(since_ns),
            required,
        };
        let whole = |reason: &str| {
            vec![unready(
                None,
                VersionState::Unavailable,
                reason.to_owned(),
                self.unready_since_ns(),
            )]
        };
        if let Some(refusal) = &self.refusal {
            return whole(refusal);
        }
        if self.versions.is_empty() {
            return whole("it has no version");
        }
        let versions =
            self.versions.values().filter(|v| !v.is_ready() && !v.is_unloaded_by_request());
        let versions: Vec<_> = versions
            .map(|version| {
                let (state, reason) = self.version_status(version);
                unready(Some(version.number), state, reason, version.since_ns())
            })
            .collect();
        if versions.is_empty() { whole("it was unloaded") } else { versions }
    }
}

impl ModelTable {
    /// All models that are not ready, by name. The server requires the models of `names`, all if it
    /// is empty; with `strict` false none.
    pub fn unready(&self, strict: bool, names: &[String]) -> Vec<UnreadyModel> {
        let mut all = self.all();
        let mut found = Vec::new();
        for name in names {
            match all.remove(name) {
                Some(model) if model.is_ready_as_required() => {}
                Some(model) => found.extend(model.unready(strict)),
                None => found.push(UnreadyModel {
                    model: name.clone(),
                    version: None,
                    state: None,
                    reason: String::new(),
                    since_ns: None,
                    required: strict,
                }),
            }
        }
        let others = all.values().filter(|model| !model.is_strictly_ready());
        found.extend(others.flat_map(|model| model.unready(strict && names.is_empty())));
        found
    }
}
