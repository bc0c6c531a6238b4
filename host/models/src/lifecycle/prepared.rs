//! A model with a checked configuration: its versions can be opened.

use super::super::ensemble::EnsembleBuilder;
use super::super::open_instances::InstanceResize;
use super::super::{ChangeKind, Model, OpenVersion};
use super::ModelVersion;
use super::version_builder::VersionBuilder;
use crate::instance::load_cancel::LoadCancel;
use crate::instance::load_progress::{LoadProgress, LoadTimes, LoadsInProgress};
use crate::instance::priority::InstancePriority;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::error::{Error, Result};

/// What opens the versions of a model.
pub enum ModelBuilder {
    Backend(Box<VersionBuilder>),
    Ensemble(Arc<EnsembleBuilder>),
}

/// A version that a load opens, and the name of its directory.
pub type VersionDir = (Arc<ModelVersion>, String);

/// Result of the steps before versions are opened.
pub struct PreparedModel {
    pub builder: ModelBuilder,
    /// The entry for the model table.
    pub model: Arc<Model>,
    /// To be opened; ascending.
    pub versions: Vec<VersionDir>,
    /// Versions that stay open.
    pub kept: Vec<i64>,
    /// Kept versions whose instances change.
    pub resized: Vec<Arc<ModelVersion>>,
    /// How often the opening of a version is tried again.
    pub retries: u64,
    pub cancel: Arc<LoadCancel>,
    pub loads: Arc<LoadsInProgress>,
    /// How long the files were fetched, and how long everything else before the opening took.
    pub fetch: Duration,
    pub parse: Duration,
}

impl ModelBuilder {
    /// Number of instances, each with counters of its own.
    pub fn instances(&self) -> usize {
        match self {
            Self::Backend(builder) => builder.plans().len(),
            Self::Ensemble(_) => 1,
        }
    }

    /// `version` for an entry that leaves it open; `None` for ensembles, which are always reopened.
    /// `resized`: its instances change.
    pub fn kept(&self, version: &ModelVersion, resized: bool) -> Option<Arc<ModelVersion>> {
        let Self::Backend(builder) = self else { return None };
        let open = version.served()?;
        if resized && !builder.can_resize(&open) {
            return None;
        }
        let stats = match &open.instances {
            // Until the change is completed there are the instances of before and the new ones.
            Some(before) if resized => {
                version.stats.resized(before.used_numbers() + self.instances())
            }
            _ => Arc::clone(&version.stats),
        };
        let open = builder.kept(&open, &stats)?;
        Some(version.kept(open, stats))
    }

    fn open(
        &self,
        version: &ModelVersion,
        dir_name: &str,
        progress: &Arc<LoadProgress>,
    ) -> Result<Arc<OpenVersion>> {
        match self {
            Self::Backend(builder) => builder.open(version, dir_name, progress),
            Self::Ensemble(builder) => {
                let served = builder.open(version)?;
                version.set_dependencies(Arc::clone(&builder.dependencies));
                Ok(served)
            }
        }
    }
}

impl PreparedModel {
    pub fn priority(&self) -> InstancePriority {
        self.model.priority()
    }

    /// Whether a model of the server has `PRIORITY_MAX`: instances of others then get a niceness.
    /// Must be set before a version is opened.
    pub fn set_max_priority_in_use(&mut self, in_use: bool) {
        if let ModelBuilder::Backend(builder) = &mut self.builder {
            builder.max_priority_in_use = in_use;
        }
    }

    /// For an ensemble: the models of its steps.
    pub fn step_models(&self) -> Option<Vec<String>> {
        match &self.builder {
            ModelBuilder::Backend(_) => None,
            ModelBuilder::Ensemble(builder) => Some(builder.step_models()),
        }
    }

    /// Opens a version and moves it to READY, or to UNAVAILABLE if that fails.
    pub fn load(&self, version: &VersionDir) -> Result<()> {
        match self.open("loading", version) {
            Ok(served) => {
                self.model.set_ready(&version.0, served);
                Ok(())
            }
            Err(e) => {
                self.model.set_unavailable(&version.0, e.message.clone());
                Err(e)
            }
        }
    }

    /// Opens instances of a version that stays open; see [`VersionBuilder::resize`].
    pub fn resize(&self, version: &ModelVersion) -> Result<InstanceResize> {
        let (name, number) = (&self.model.name, version.number);
        let (ModelBuilder::Backend(builder), Some(open)) = (&self.builder, version.served()) else {
            return Err(Error::internal(format!("model '{name}' version {number} is not open")));
        };
        let progress = self.loads.begin(name, number, &self.cancel);
        let resized = builder.resize(version, &open, &progress);
        match &resized {
            Ok(resized) => tracing::info!(
                "updating: {name}:{number}: {} instances opened, {} are closed",
                resized.opened.len(),
                resized.close.len()
            ),
            Err(e) => tracing::error!("failed to update '{name}' version {number}: {e}"),
        }
        let (kind, text) = match &resized {
            Ok(resized) => (
                ChangeKind::Loaded,
                format!(
                    "{} instances opened, {} closed",
                    resized.opened.len(),
                    resized.close.len()
                ),
            ),
            Err(e) => (ChangeKind::Failed, e.message.clone()),
        };
        self.loads.changes.add(name, Some(number), kind, &text);
        resized
    }

    /// Opens a version without serving it; `action` names the step in the log.
    pub fn open(&self, action: &str, (version, dir_name): &VersionDir) -> Result<Arc<OpenVersion>> {
        let (name, number) = (&self.model.name, version.number);
        tracing::info!("{action}: {name}:{number}");
        let note = |kind, text: &str| self.loads.changes.add(name, Some(number), kind, text);
        note(ChangeKind::Loading, "");
        let mut tries = 0..=self.retries;
        loop {
            let progress = self.loads.begin(name, number, &self.cancel);
            let opened = self.builder.open(version, dir_name, &progress);
            tries.next();
            match &opened {
                Ok(_) => {
                    let (open, warm) = progress.open_and_warm();
                    let times = LoadTimes { fetch: self.fetch, parse: self.parse, open, warm };
                    tracing::info!(
                        "successfully loaded '{name}' version {number} in {:.1} ms (fetch {:.1}, parse {:.1}, open \
                         {:.1}, warm-up {:.1})",
                        as_milliseconds(times.total()),
                        as_milliseconds(times.fetch),
                        as_milliseconds(times.parse),
                        as_milliseconds(times.open),
                        as_milliseconds(times.warm)
                    );
                    let total = as_milliseconds(times.total());
                    note(ChangeKind::Loaded, &format!("in {total:.1} ms"));
                    version.set_load_times(times);
                }
                Err(e) if tries.is_empty() || self.cancel.is_cancelled() => {
                    let status = e.code.name();
                    tracing::error!("failed to load '{name}' version {number}: {status}: {e}");
                    note(ChangeKind::Failed, &e.message);
                }
                Err(e) => {
                    let (retry, of) = (tries.start(), self.retries);
                    tracing::warn!(
                        "failed to load '{name}' version {number}, retry {retry} of {of}: {e}"
                    );
                    note(ChangeKind::Failed, &format!("retry {retry} of {of}: {}", e.message));
                    continue;
                }
            }
            return opened;
        }
    }
}

fn as_milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
