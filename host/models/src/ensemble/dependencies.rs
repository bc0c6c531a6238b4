//! Dependencies of an ensemble: the models of its steps, and whether they are served.

use super::super::{Model, ModelTable, ModelVersion, OpenVersion};
use super::load_order::not_available;
use std::borrow::Cow;
use std::sync::{Arc, Weak};
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::VersionStats;
use trtserver_model_config::model_id;
use trtserver_request::{InferRequest, ModelSignature, RequestSequence};
use trtserver_response_cache::ResponseStore;
use trtserver_scheduler::Scheduler;
use trtserver_scheduler::ensemble::{StepModel, StepModels, StepPlan};

/// The models of an ensemble's steps.
pub struct EnsembleDependencies {
    /// Id of the ensemble.
    id: String,
    pub(super) steps: Vec<StepPlan>,
    /// Weak, because the table holds the ensemble.
    models: Weak<ModelTable>,
}

impl EnsembleDependencies {
    pub fn new(id: &str, steps: Vec<StepPlan>, models: &Arc<ModelTable>) -> Self {
        Self { id: id.to_owned(), steps, models: Arc::downgrade(models) }
    }

    /// The id of the model of a step.
    fn resolve_step<'a>(&self, models: &ModelTable, step: &'a str) -> Cow<'a, str> {
        match model_id::split_model_id(&self.id).0 {
            "" => Cow::Borrowed(step),
            _ => Cow::Owned(models.resolve_step(&self.id, step)),
        }
    }

    /// Why the ensemble cannot be served now; `None` if all its steps are.
    pub fn unmet(&self) -> Option<String> {
        self.unmet_step().map(|(reason, _)| reason)
    }

    /// Since when the first step that is not served is not, in nanoseconds of CLOCK_MONOTONIC;
    /// `None` if its model is gone.
    pub fn unmet_since_ns(&self) -> Option<u64> {
        self.unmet_step().and_then(|(_, model)| model).map(|model| model.unready_since_ns())
    }

    /// Why the ensemble cannot be served now, and the model of that step.
    fn unmet_step(&self) -> Option<(String, Option<Arc<Model>>)> {
        let models = self.models.upgrade()?;
        let (_, ensemble) = model_id::split_model_id(&self.id);
        let subject = format!("ensemble '{ensemble}' depends on");
        self.steps.iter().find_map(|step| {
            let name = &step.model;
            let Some(model) = models.get(&self.resolve_step(&models, name)) else {
                return Some((not_available(ensemble, &[name]), None));
            };
            let ready = model.ready_versions();
            let reason = if let Some(refusal) = &model.refusal {
                format!("{subject} '{name}' which is not valid: {refusal}")
            } else if ready.is_empty() {
                format!("{subject} '{name}' which has no loaded version{}", unready_reasons(&model))
            } else {
                let version = required_version(&model, step.version)?;
                if ready.contains(&version) {
                    return None;
                }
                format!("{subject} '{name}' whose required version {version} is not loaded")
            };
            Some((reason, Some(model)))
        })
    }

    /// Whether every step that is not served was unloaded by request.
    pub fn unloaded_by_request(&self) -> bool {
        let Some(models) = self.models.upgrade() else { return false };
        self.steps.iter().all(|step| match models.get(&self.resolve_step(&models, &step.model)) {
            Some(model) => {
                let number = required_version(&model, step.version);
                let required = |v: &&Arc<ModelVersion>| number.is_none_or(|n| n == v.number);
                let mut versions = model.versions.values().filter(required);
                model.refusal.is_none()
                    && versions.all(|v| v.is_ready() || v.is_unloaded_by_request())
            }
            None => true,
        })
    }

    /// The response cache of the server.
    pub(super) fn response_store(&self) -> Option<Arc<ResponseStore>> {
        self.models.upgrade()?.response_store().cloned()
    }

    /// What serves a step.
    pub(super) fn find(&self, step: &StepPlan) -> Result<Arc<OpenVersion>> {
        self.look_up(&step.model, step.version)
    }

    fn look_up(&self, name: &str, version: Option<i64>) -> Result<Arc<OpenVersion>> {
        let Some(models) = self.models.upgrade() else {
            return Err(Error::unavailable("the model table no longer exists: the server stops"));
        };
        let id = self.resolve_step(&models, name);
        let version = match models.get(&id) {
            Some(model) => required_version(&model, version),
            None => version,
        };
        models.find(&id, version).map_err(|e| e.error())
    }
}

/// A version that the configuration leaves out reads as 0. It means the highest version, unless
/// there is a version 0.
fn required_version(model: &Model, version: Option<i64>) -> Option<i64> {
    version.filter(|v| *v != 0 || model.versions.contains_key(v))
}

/// Why the versions of a model are not loaded, as the end of a sentence.
fn unready_reasons(model: &Model) -> String {
    let reasons = model.versions.values().filter_map(|version| {
        let status = version.status();
        (!status.1.is_empty()).then(|| format!("version {}: {}", version.number, status.1))
    });
    let reasons: Vec<String> = reasons.collect();
    if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) }
}

impl StepModels for EnsembleDependencies {
    fn find(&self, model: &str, version: Option<i64>) -> Result<Arc<dyn StepModel>> {
        Ok(self.look_up(model, version)?)
    }
}

impl StepModel for OpenVersion {
    fn signature(&self) -> &Arc<ModelSignature> {
        &self.signature
    }

    fn stats(&self) -> &Arc<VersionStats> {
        &self.stats
    }

    fn version(&self) -> i64 {
        self.version
    }

    fn writes_on_gpu(&self, name: &str) -> bool {
        match &self.scheduler {
            Scheduler::Queue(_) => self.backend.as_ref().is_some_and(|backend| backend.on_gpu),
            Scheduler::Ensemble(ensemble) => ensemble.writes_on_gpu(name),
        }
    }

    fn reads_on_gpu(&self, name: &str) -> bool {
        match &self.scheduler {
            Scheduler::Queue(_) => self.backend.as_ref().is_some_and(|backend| backend.on_gpu),
            Scheduler::Ensemble(ensemble) => ensemble.reads_on_gpu(name),
        }
    }

    fn has_sequence(&self, sequence: &RequestSequence) -> bool {
        self.scheduler.has_sequence(sequence)
    }

    fn begun_on(&self, sequence: &RequestSequence, exact: bool) -> Option<Arc<dyn StepModel>> {
        let began = OpenVersion::begun_on(self, sequence, exact)?;
        began.signature.has_same_tensors(&self.signature).then_some(began as Arc<dyn StepModel>)
    }

    fn submit(&self, request: InferRequest) {
        self.schedule(request);
    }
}
