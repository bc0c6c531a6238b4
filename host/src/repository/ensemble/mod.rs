//! Ensembles as the repository sees them: what they need of other models, and how they are opened.

mod agree; // an ensemble against its steps' models
mod order; // which is loaded before which, and which cannot be

pub use order::{Uses, order};

use super::{Model, Repository, Served, Version};
use crate::error::{Error, Result};
use crate::request::{InferRequest, Sequence, Signature};
use crate::scheduler::Scheduler;
use crate::scheduler::ensemble::{Ensemble, Graph, StepModel, StepModels, StepPlan};
use crate::stats::VersionStats;
use agree::Composing;
use std::sync::{Arc, Weak};
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

/// The steps of an ensemble's configuration; none for other models.
pub fn steps(config: &ModelConfig) -> Vec<StepPlan> {
    let Some(SchedulingChoice::EnsembleScheduling(ensemble)) = &config.scheduling_choice else {
        return Vec::new();
    };
    let step = |s: &trtserver_proto::v2::model_ensembling::Step| StepPlan {
        model: s.model_name.clone(),
        version: (s.model_version >= 0).then_some(s.model_version),
        inputs: s.input_map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        outputs: s.output_map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
    };
    ensemble.step.iter().map(step).collect()
}

/// An ensemble whose configuration is settled; its versions can be opened.
pub struct Prepared {
    pub config: Arc<ModelConfig>,
    pub signature: Arc<Signature>,
    pub needs: Arc<Needs>,
}

impl Prepared {
    /// `repository` is where the steps' models are looked up.
    pub fn new(
        config: &Arc<ModelConfig>,
        signature: Arc<Signature>,
        repository: &Arc<Repository>,
    ) -> Self {
        let needs = Needs {
            ensemble: config.name.clone(),
            steps: steps(config),
            repository: Arc::downgrade(repository),
        };
        Self { config: Arc::clone(config), signature, needs: Arc::new(needs) }
    }

    /// The models of its steps.
    pub fn uses(&self) -> Vec<String> {
        self.needs.steps.iter().map(|step| step.model.clone()).collect()
    }

    /// Opens `version`; the steps' models must be served already.
    ///
    /// # Errors
    /// A step's model is not served, or the ensemble and its steps do not fit together.
    pub fn open(&self, version: &Version) -> Result<Arc<Served>> {
        let number = version.number;
        if let Some(why) = self.needs.broken() {
            return Err(Error::invalid(why));
        }
        let find = |plan| Ok(Composing { plan, served: self.needs.served(plan)? });
        let steps = self.needs.steps.iter().map(find).collect::<Result<Vec<_>>>()?;
        agree::check(&self.signature, &steps)?;
        let signature = Arc::new(agree::with_labels(&self.signature, &steps));
        let graph = Graph::new(&signature, &self.needs.steps)?;
        let models = Arc::clone(&self.needs) as Arc<dyn StepModels>;
        Ok(Arc::new(Served {
            name: self.config.name.as_str().into(),
            version: number,
            version_text: number.to_string().into(),
            config: Arc::clone(&self.config),
            signature,
            stats: Arc::clone(&version.stats),
            open: version.open(),
            scheduler: Scheduler::Ensemble(Ensemble::new(graph, models)),
            backend: None,
            arena: None,
        }))
    }
}

/// What an ensemble needs of other models.
pub struct Needs {
    ensemble: String,
    steps: Vec<StepPlan>,
    /// Weakly: the repository holds the ensemble.
    repository: Weak<Repository>,
}

impl Needs {
    /// Why the ensemble cannot be served as the repository is now.
    pub fn broken(&self) -> Option<String> {
        let repository = self.repository.upgrade()?;
        let subject = format!("ensemble '{}' depends on", self.ensemble);
        self.steps.iter().find_map(|step| {
            let name = &step.model;
            let Some(model) = repository.model(name) else {
                return Some(not_available(&self.ensemble, &[name]));
            };
            if let Some(refusal) = &model.refusal {
                return Some(format!("{subject} '{name}' which is not valid: {refusal}"));
            }
            let ready = model.ready_versions();
            if ready.is_empty() {
                return Some(format!(
                    "{subject} '{name}' which has no loaded version{}",
                    why(&model)
                ));
            }
            let version = wanted(&model, step.version)?;
            let gone = !ready.contains(&version);
            gone.then(|| {
                format!("{subject} '{name}' whose required version {version} is not loaded")
            })
        })
    }

    /// Whether what is missing was unloaded by request.
    pub fn is_idle(&self) -> bool {
        let Some(repository) = self.repository.upgrade() else { return false };
        let idle = |step: &StepPlan| match repository.model(&step.model) {
            Some(model) => {
                let version = wanted(&model, step.version);
                let chosen = |v: &&Arc<Version>| version.is_none_or(|n| n == v.number);
                let mut chosen = model.versions.values().filter(chosen);
                model.refusal.is_none() && chosen.all(|v| v.is_ready() || v.is_idle())
            }
            None => true,
        };
        self.steps.iter().all(idle)
    }

    fn served(&self, step: &StepPlan) -> Result<Arc<Served>> {
        self.look_up(&step.model, step.version)
    }

    fn look_up(&self, name: &str, version: Option<i64>) -> Result<Arc<Served>> {
        let Some(repository) = self.repository.upgrade() else {
            return Err(Error::unavailable("the model repository is gone"));
        };
        let version = match repository.model(name) {
            Some(model) => wanted(&model, version),
            None => version,
        };
        repository.find(name, version).map_err(|missing| missing.error())
    }
}

/// A version left out of the configuration reads as 0: it means the highest one, unless there is a version 0.
fn wanted(model: &Model, version: Option<i64>) -> Option<i64> {
    version.filter(|v| *v != 0 || model.versions.contains_key(v))
}

/// Why a model has no loaded version, if any of its versions says.
fn why(model: &Model) -> String {
    let reasons = model.versions.values().filter_map(|version| {
        let status = version.status();
        (!status.1.is_empty()).then(|| format!("version {}: {}", version.number, status.1))
    });
    let reasons: Vec<String> = reasons.collect();
    if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) }
}

/// The complaint about models that are nowhere, or in several places.
fn not_available(ensemble: &str, models: &[&str]) -> String {
    let list = models.join(", ");
    format!("ensemble {ensemble} contains models that are not available or ambiguous: {list}")
}

impl StepModels for Needs {
    fn find(&self, model: &str, version: Option<i64>) -> Result<Arc<dyn StepModel>> {
        Ok(self.look_up(model, version)?)
    }
}

impl StepModel for Served {
    fn signature(&self) -> &Arc<Signature> {
        &self.signature
    }

    fn stats(&self) -> &Arc<VersionStats> {
        &self.stats
    }

    fn has_sequence(&self, sequence: &Sequence) -> bool {
        self.scheduler.has_sequence(sequence)
    }

    fn submit(&self, request: InferRequest) {
        self.scheduler.submit(request);
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
