//! Loads the model repository at start: all models, or those that `--load-model` names and the
//! steps of ensembles.

use super::super::{Model, ModelTable, ensemble};
use super::prepare::{LoadRequest, ModelLoader};
use super::prepared::{PreparedModel, VersionDir};
use super::refusal::RefusedModel;
use crate::instance::priority::InstancePriority;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use trtserver_base::error::{Code, Error, Result};
use trtserver_model_config::model_id;
use trtserver_model_store::{ModelRepositories, ModelSource};

const PANICKED: &str = "loading panicked; see the log";

/// Result of the load at start.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StartupReport {
    /// Number of versions.
    pub loaded: usize,
    /// One text for each model that was refused and each version that failed.
    pub failures: Vec<String>,
}

/// Models prepared so far, and table entries of models that were refused.
#[derive(Default)]
struct StartupPreparation {
    prepared: BTreeMap<String, PreparedModel>,
    refused: HashMap<String, Arc<Model>>,
    /// Failures of models that were requested by name and are in no repository.
    missing: Vec<String>,
    report: StartupReport,
}

impl ModelLoader {
    /// Reads all repositories, publishes their models and loads the selected versions; with `only`,
    /// of those models and of the models of their steps.
    ///
    /// A model that fails does not affect the others; the caller decides what failures mean.
    pub fn load_all(
        &self,
        models: &Arc<ModelTable>,
        repositories: &ModelRepositories,
        only: Option<&[String]>,
    ) -> StartupReport {
        let listing = repositories.list();
        let mut preparation = self.prepare_all(models, &listing.models, only);
        let order = preparation.order_ensembles(&listing.models);
        let StartupPreparation { mut prepared, refused: mut table, missing, mut report } =
            preparation;
        let unlisted: Vec<_> = listing.failures.into_iter().map(|e| e.message).collect();
        if only.is_none() && !unlisted.is_empty() {
            models.set_listing_failure(Some(unlisted.join("; ")));
        }
        report.failures.extend(unlisted);
        report.failures.extend(missing);
        // Before any instance opens: if a model has PRIORITY_MAX, instances of the others open with
        // a niceness.
        let max_in_use = prepared.values().any(|model| model.priority() == InstancePriority::Max);
        prepared.values_mut().for_each(|model| model.set_max_priority_in_use(max_in_use));
        for (name, prepared) in &prepared {
            tracing::info!("New status tracking for model '{name}'");
            table.insert(name.clone(), Arc::clone(&prepared.model));
        }
        models.replace_all(table);
        let ensembles: Vec<_> = order.iter().filter_map(|name| prepared.remove(name)).collect();
        let others: Vec<_> = prepared.into_values().collect();
        self.load_in_parallel(&others, &mut report);
        // Ensembles load fast, and one may be a step of the next: they are loaded one after
        // another, in this order.
        for ensemble in &ensembles {
            for version in &ensemble.versions {
                report.add(load_version(ensemble, version));
            }
        }
        report
    }

    fn prepare_all(
        &self,
        models: &Arc<ModelTable>,
        sources: &BTreeMap<String, Vec<ModelSource>>,
        only: Option<&[String]>,
    ) -> StartupPreparation {
        let mut preparation = StartupPreparation::default();
        let requested: Vec<String> = match only {
            None => sources.keys().cloned().collect(),
            Some(names) => names.iter().flat_map(|name| ids_named(sources, name)).collect(),
        };
        let mut pending: Vec<(String, bool)> =
            requested.into_iter().map(|name| (name, true)).collect();
        let mut seen = BTreeSet::new();
        // The models of steps are known when the ensembles are prepared. Requested names come
        // first: a model that is also a step counts as requested by name.
        while !pending.is_empty() {
            let mut wave = Vec::new();
            for (name, by_name) in pending.drain(..) {
                match sources.get_key_value(&name) {
                    Some((name, sources)) if seen.insert(name) => {
                        wave.push((name, sources.as_slice(), by_name));
                    }
                    None if by_name => preparation.is_missing(&name),
                    _ => {}
                }
            }
            let prepared = self.in_parallel(&wave, |(name, sources, by_name)| {
                self.prepare_source(name, sources, models, *by_name)
            });
            for ((name, ..), prepared) in wave.iter().zip(prepared) {
                match prepared.unwrap_or_else(|| Err(Error::internal(PANICKED).into())) {
                    Ok(prepared) => {
                        let steps = ids_of_steps(sources, name, &prepared).unwrap_or_default();
                        pending.extend(steps.into_iter().map(|step| (step, false)));
                        preparation.prepared.insert((*name).clone(), prepared);
                    }
                    Err(e) => preparation.refuse(name, e),
                }
            }
        }
        preparation
    }

    fn prepare_source(
        &self,
        name: &str,
        sources: &[ModelSource],
        models: &Arc<ModelTable>,
        by_name: bool,
    ) -> Result<PreparedModel, RefusedModel> {
        let source = ModelSource::only(name, sources).map_err(not_polled)?;
        let fingerprint = if self.reloadable { source.fingerprint().ok() } else { None };
        let mut request = LoadRequest { fingerprint, by_name, ..LoadRequest::default() };
        let fetching = Instant::now();
        let files = source.materialise(request.cancel.flag())?;
        request.fetch = fetching.elapsed();
        self.prepare(name, &files, models, request)
    }

    fn load_in_parallel(&self, models: &[PreparedModel], report: &mut StartupReport) {
        let versions: Vec<(&PreparedModel, &VersionDir)> =
            models.iter().flat_map(|m| m.versions.iter().map(move |v| (m, v))).collect();
        let results = self.in_parallel(&versions, |(model, version)| load_version(model, version));
        let panicked = || Err(PANICKED.to_owned());
        results.into_iter().for_each(|result| report.add(result.unwrap_or_else(panicked)));
    }

    /// Does `work` for each of `items`, on at most `--model-load-thread-count` threads. Results in
    /// the order of the items, `None` where it panicked.
    fn in_parallel<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: impl Fn(&T) -> R + Sync,
    ) -> Vec<Option<R>> {
        let next = AtomicUsize::new(0);
        let run = || {
            let mut results = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(at) else { return results };
                results.push((at, catch_unwind(AssertUnwindSafe(|| work(item))).ok()));
            }
        };
        let threads = self.threads.clamp(1, items.len().max(1));
        let mut results: Vec<(usize, Option<R>)> = std::thread::scope(|scope| {
            let start =
                |_| std::thread::Builder::new().name("load".into()).spawn_scoped(scope, run);
            let handles: Vec<_> = (0..threads).map_while(|number| start(number).ok()).collect();
            // Without any thread the work is done here.
            let here = if handles.is_empty() { run() } else { Vec::new() };
            let joined = handles.into_iter().flat_map(|handle| handle.join().unwrap_or_default());
            joined.chain(here).collect()
        });
        results.sort_unstable_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

impl StartupPreparation {
    /// A model that was requested by name is in no repository.
    fn is_missing(&mut self, name: &str) {
        tracing::error!("failed to load '{name}', failed to poll from model repository");
        self.missing.push(format!("'{name}': failed to poll from model repository"));
    }

    fn refuse(&mut self, name: &str, refused: impl Into<RefusedModel>) {
        let RefusedModel { error, config, unreadable, read } = refused.into();
        tracing::error!("failed to load model '{name}': {error}");
        self.report.failures.push(format!("'{name}': {error}"));
        let refused = Model::refused(name, None, config, refusal_reason(error));
        refused.load_info.unreadable.store(unreadable, Ordering::Relaxed);
        refused.keep_read_config(read);
        self.refused.insert(name.to_owned(), refused);
    }

    /// The order in which ensembles are loaded. Refuses those that no order can serve.
    fn order_ensembles(&mut self, sources: &BTreeMap<String, Vec<ModelSource>>) -> Vec<String> {
        let prepared = self.prepared.iter();
        let steps =
            prepared.filter_map(|(id, m)| Some((id.clone(), ids_of_steps(sources, id, m)?)));
        let unique = |name: &str| sources.get(name).is_some_and(|sources| sources.len() == 1);
        let order = ensemble::load_order(&steps.collect(), unique);
        for (name, reason) in order.refused {
            self.prepared.remove(&name);
            self.refuse(&name, Error::invalid(reason));
        }
        order.names
    }
}

/// A model that is not read at all does not count for readiness if it is in several repositories.
pub(super) fn not_polled(error: Error) -> RefusedModel {
    let unreadable = error.code == Code::AlreadyExists;
    RefusedModel { unreadable, ..error.into() }
}

/// What the index says of a model that several repositories have: the text of Triton.
pub const AMBIGUOUS: &str = "model appears in two or more repositories";

/// The reason that the index shows for a refused model.
pub(super) fn refusal_reason(error: Error) -> String {
    if error.code == Code::AlreadyExists { AMBIGUOUS.to_owned() } else { error.message }
}

/// The ids of the models called `name`; the name itself if there is none.
fn ids_named(sources: &BTreeMap<String, Vec<ModelSource>>, name: &str) -> Vec<String> {
    let named: Vec<String> =
        sources.keys().filter(|id| model_id::split_model_id(id).1 == name).cloned().collect();
    if named.is_empty() { vec![name.to_owned()] } else { named }
}

/// The ids of the models of the steps, if it is an ensemble.
fn ids_of_steps(
    sources: &BTreeMap<String, Vec<ModelSource>>,
    ensemble: &str,
    prepared: &PreparedModel,
) -> Option<Vec<String>> {
    let exists = |id: &str| sources.contains_key(id);
    let id = |step: String| {
        model_id::resolve_step_id(ensemble, &step, exists, |name| ids_named(sources, name))
    };
    Some(prepared.step_models()?.into_iter().map(id).collect())
}

impl StartupReport {
    fn add(&mut self, result: Result<(), String>) {
        match result {
            Ok(()) => self.loaded += 1,
            Err(text) => self.failures.push(text),
        }
    }
}

/// Loads a version; the error names model and version.
fn load_version(model: &PreparedModel, version: &VersionDir) -> Result<(), String> {
    let name = &model.model.name;
    model.load(version).map_err(|e| format!("'{name}' version {}: {e}", version.0.number))
}
