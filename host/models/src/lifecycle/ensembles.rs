//! Ensembles under model control: the models of their steps are loaded first, and an ensemble is
//! reopened after the model of a step was reloaded.

use super::super::{Model, ensemble};
use super::control::run_blocking;
use super::{LoadError, ModelControl};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::Error;
use trtserver_proto::v2::ModelConfig;

/// What has to be loaded before a model.
#[derive(Default)]
pub(super) struct StepsToLoad {
    pub models: Vec<String>,
    /// The ensembles in load order.
    pub ensembles: Vec<String>,
}

impl ModelControl {
    /// What has to be loaded before `name`, according to the configuration files; `config` replaces
    /// that of `name`.
    ///
    /// # Errors
    /// Steps that form a cycle, or whose models are in no repository.
    pub(super) fn models_of_steps(
        &self,
        name: &str,
        config: Option<&ModelConfig>,
    ) -> Result<StepsToLoad, LoadError> {
        let mut ensembles: ensemble::EnsembleSteps = BTreeMap::new();
        let (mut models, mut pending) = (BTreeSet::new(), vec![name.to_owned()]);
        while let Some(next) = pending.pop() {
            if models.contains(&next) || ensembles.contains_key(&next) {
                continue;
            }
            let steps = match config {
                Some(config) if next == name => self.ids_of_steps(&next, config),
                // An invalid configuration is reported by the load of that model.
                _ => self.steps_in_repository(&next).unwrap_or_default(),
            };
            if steps.is_empty() {
                models.insert(next);
            } else {
                pending.extend(steps.iter().cloned());
                ensembles.insert(next, steps);
            }
        }
        let unique = |name: &str| self.repositories.only(name).is_ok();
        let mut order = ensemble::load_order(&ensembles, unique);
        if let Some(reason) = order.refused.remove(name).filter(|_| unique(name)) {
            return Err(LoadError::Refused(Error::invalid(reason)));
        }
        models.remove(name);
        order.names.retain(|ensemble| ensemble != name);
        Ok(StepsToLoad { models: models.into_iter().collect(), ensembles: order.names })
    }

    /// The models of the steps of `name`, according to its configuration file; none if it is not an
    /// ensemble.
    pub fn list_steps(&self, name: &str) -> Vec<String> {
        self.steps_in_repository(name).unwrap_or_default()
    }

    /// The models of the steps of `name`; empty if it is not an ensemble or is not in exactly one
    /// repository.
    fn steps_in_repository(&self, name: &str) -> Result<Vec<String>, Error> {
        let Ok(source) = self.repositories.only(name) else { return Ok(Vec::new()) };
        let files = source.materialise(&CancelFlag::default())?;
        let config =
            self.loader.read_config(&source.name, &files, &self.loader.places(files.path()))?;
        Ok(self.ids_of_steps(name, &config))
    }

    /// The ids of the models of an ensemble's steps; empty for other models.
    fn ids_of_steps(&self, id: &str, config: &ModelConfig) -> Vec<String> {
        let steps = ensemble::step_plans(config).into_iter();
        steps.map(|step| self.repositories.resolve_step(id, &step.model)).collect()
    }

    /// Reopens these ensembles, which have a step whose tensors may have changed, and all loaded
    /// ones of which they are a step in turn.
    pub(super) async fn reopen_ensembles(
        self: &Arc<Self>,
        mut pending: Vec<String>,
    ) -> Result<(), LoadError> {
        let mut seen = BTreeSet::new();
        while let Some(ensemble) = pending.pop() {
            if seen.insert(ensemble.clone()) {
                let _lock = self.locks.lock(&ensemble).await;
                let this = Arc::clone(self);
                let reopen = move || {
                    this.reopen(&ensemble);
                    this.list_dependent_ensembles(&ensemble)
                };
                pending.extend(run_blocking(reopen).await?);
            }
        }
        Ok(())
    }

    fn reopen(&self, name: &str) {
        let _ensembles = self.ensembles.lock();
        let Some(model) = self.models.get(name).filter(|m| m.should_serve()) else { return };
        let Some(builder) = &model.load_info.ensemble else { return };
        for version in model.versions.values().filter(|v| !v.is_unloaded()) {
            match builder.open(version) {
                Ok(served) => {
                    version.set_dependencies(Arc::clone(&builder.dependencies));
                    model.set_ready(version, served);
                }
                Err(e) => {
                    let number = version.number;
                    tracing::error!("ensemble '{name}' version {number} is out of service: {e}");
                    model.set_unavailable(version, e.message);
                }
            }
        }
    }

    pub(super) async fn unload_with_steps(
        self: Arc<Self>,
        name: String,
        dependents: bool,
    ) -> Result<(), LoadError> {
        let mut pending = vec![name];
        while let Some(name) = pending.pop() {
            let model = self.models.get(&name);
            let lock = self.locks.lock(&name).await;
            let (this, model_name) = (Arc::clone(&self), name.clone());
            run_blocking(move || this.unload_model(&model_name)).await??;
            drop(lock);
            let ensemble = model.and_then(|m| m.load_info.ensemble.clone());
            if let Some(ensemble) = ensemble.filter(|_| dependents) {
                let steps = ensemble.step_models().into_iter();
                let ids = steps.map(|step| self.models.resolve_step(&name, &step));
                pending.extend(ids.filter(|step| self.is_unneeded(step)));
            }
        }
        Ok(())
    }

    /// Loaded only as a step, and no loaded ensemble has it as a step any more.
    fn is_unneeded(&self, name: &str) -> bool {
        let by_name = |m: Arc<Model>| m.load_info.requested_by_name.load(Ordering::Relaxed);
        let only_step = self.models.get(name).is_some_and(|m| !by_name(m));
        only_step && self.list_dependent_ensembles(name).is_empty()
    }

    /// Loaded ensembles that have `name` as a step. Looks at all models: not to be called on a
    /// network thread.
    pub(super) fn list_dependent_ensembles(&self, name: &str) -> Vec<String> {
        let mut ensembles = BTreeSet::new();
        self.models.visit(|model| {
            let is_it = |step: &String| self.models.resolve_step(&model.id, step) == name;
            if let Some(ensemble) = &model.load_info.ensemble
                && model.should_serve()
                && ensemble.step_models().iter().any(is_it)
            {
                ensembles.insert(model.id.to_string());
            }
        });
        ensembles.into_iter().collect()
    }
}
