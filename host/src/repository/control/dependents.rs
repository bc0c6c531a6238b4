//! Ensembles and what they are made of: steps are loaded before them, and they are opened again after their steps.

use super::super::{Model, VersionState, disk, ensemble};
use super::change::lock;
use super::{Control, LoadError, blocking};
use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trtserver_proto::v2::ModelConfig;

/// What a model is made of.
#[derive(Default)]
pub(super) struct Steps {
    pub models: Vec<String>,
    /// In the order in which they are loaded.
    pub ensembles: Vec<String>,
}

impl Control {
    /// What must be loaded before `name`, by what the directories say; `config` stands in for that of `name`.
    ///
    /// # Errors
    /// Ensembles that are made of themselves, or of models that are not there.
    pub(super) fn steps_first(
        &self,
        name: &str,
        config: Option<&ModelConfig>,
    ) -> Result<Steps, LoadError> {
        let mut uses: ensemble::Uses = BTreeMap::new();
        let (mut models, mut open) = (BTreeSet::new(), vec![name.to_owned()]);
        while let Some(next) = open.pop() {
            if models.contains(&next) || uses.contains_key(&next) {
                continue;
            }
            let read = match config {
                Some(config) if next == name => steps(config),
                // What is wrong with it is said when it is loaded itself.
                _ => match &disk::dirs(&self.roots, &next)[..] {
                    [dir] => self.loader.read(&next, dir).map(|c| steps(&c)).unwrap_or_default(),
                    _ => Vec::new(),
                },
            };
            if read.is_empty() {
                models.insert(next);
            } else {
                open.extend(read.iter().cloned());
                uses.insert(next, read);
            }
        }
        let known = |name: &str| disk::dirs(&self.roots, name).len() == 1;
        let mut order = ensemble::order(&uses, known);
        if let Some(why) = order.refused.remove(name).filter(|_| known(name)) {
            return Err(LoadError::Refused(Error::invalid(why)));
        }
        models.remove(name);
        order.names.retain(|ensemble| ensemble != name);
        Ok(Steps { models: models.into_iter().collect(), ensembles: order.names })
    }

    /// Opens all loaded ensembles again that `name` is a step of, and those that are made of them: the steps may have
    /// other tensors now.
    pub(super) async fn open_again_what_needs(
        self: &Arc<Self>,
        name: &str,
    ) -> Result<(), LoadError> {
        let (mut open, mut seen) = (vec![name.to_owned()], BTreeSet::new());
        while let Some(step) = open.pop() {
            for ensemble in self.ensembles_of(&step) {
                if seen.insert(ensemble.clone()) {
                    let _turn = self.turns.take(&ensemble).await;
                    let (me, name) = (Arc::clone(self), ensemble.clone());
                    blocking(move || me.open_again(&name)).await?;
                    open.push(ensemble);
                }
            }
        }
        Ok(())
    }

    fn open_again(&self, name: &str) {
        let _alone = lock(&self.ensembles);
        let Some(model) = self.repository.model(name).filter(|m| is_wanted(m)) else { return };
        let Some(prepared) = &model.origin.ensemble else { return };
        for version in model.versions.values().filter(|v| !v.is_unloaded()) {
            match prepared.open(version) {
                Ok(served) => {
                    version.depends_on(Arc::clone(&prepared.needs));
                    model.ready(version, served);
                }
                Err(e) => {
                    let number = version.number;
                    tracing::error!("ensemble '{name}' version {number} is out of service: {e}");
                    model.not_ready(version, VersionState::Unavailable, e.message);
                }
            }
        }
    }

    pub(super) async fn unload_with_steps(
        self: Arc<Self>,
        name: String,
        dependents: bool,
    ) -> Result<(), LoadError> {
        let mut open = vec![name];
        while let Some(name) = open.pop() {
            let model = self.repository.model(&name);
            let turn = self.turns.take(&name).await;
            let (me, of) = (Arc::clone(&self), name.clone());
            blocking(move || me.withdraw(&of)).await??;
            drop(turn);
            if let Some(ensemble) =
                model.and_then(|m| m.origin.ensemble.clone()).filter(|_| dependents)
            {
                open.extend(ensemble.uses().into_iter().filter(|step| self.is_spare(step)));
            }
        }
        Ok(())
    }

    /// Loaded for an ensemble's sake alone, and no loaded ensemble is made of it.
    fn is_spare(&self, name: &str) -> bool {
        let asked = |m: Arc<Model>| m.origin.asked.load(Ordering::Relaxed);
        let spare = self.repository.model(name).is_some_and(|m| !asked(m));
        spare && self.ensembles_of(name).is_empty()
    }

    /// Ensembles that are to be served and have `name` as a step.
    fn ensembles_of(&self, name: &str) -> Vec<String> {
        let models = self.repository.models().into_iter();
        let has = |model: &Model| {
            let ensemble = model.origin.ensemble.as_ref();
            is_wanted(model) && ensemble.is_some_and(|e| e.uses().iter().any(|step| step == name))
        };
        models.filter(|(_, model)| has(model)).map(|(name, _)| name).collect()
    }
}

fn is_wanted(model: &Model) -> bool {
    model.origin.wanted.load(Ordering::Relaxed)
}

/// The models that an ensemble is made of; none for other models.
fn steps(config: &ModelConfig) -> Vec<String> {
    ensemble::steps(config).into_iter().map(|step| step.model).collect()
}
