//! Offline validation of a model repository (`trtserver check`): the steps of a load up to the
//! opening of versions, with every problem as a finding instead of the first one as an error.

mod files;
mod finding;

pub use finding::{CheckFinding, CheckedModel, FindingSeverity, RepositoryFindings};

use super::super::{Model, ModelTable, ensemble};
use super::prepare::{LoadRequest, ModelLoader};
use super::prepared::{ModelBuilder, PreparedModel};
use super::refusal::ModelRefusal;
use finding::FindingLocator;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::Result;
use trtserver_model_config::model_id;
use trtserver_model_config::{ConfigPart, ConfigWarning};
use trtserver_model_store::{ModelDir, ModelRepositories, ModelSource};
use trtserver_plugin_host::Backends;
use trtserver_request::ModelSignature;

/// A model while it is checked.
struct ModelInspection {
    found: CheckedModel,
    /// `None` if the files cannot be read, or lie in several repositories.
    files: Option<Arc<ModelDir>>,
    prepared: Option<PreparedModel>,
}

impl ModelLoader {
    /// Checks every model of the repositories. Files of object stores are downloaded as a server
    /// would. With `open` the versions that would be served are opened and warmed up, too, and
    /// closed.
    ///
    /// # Errors
    /// A repository cannot be listed.
    pub fn check_all(
        &self,
        repositories: &ModelRepositories,
        open: bool,
    ) -> Result<RepositoryFindings> {
        let mut all = RepositoryFindings::default();
        let mut sources: BTreeMap<String, Vec<(PathBuf, ModelSource)>> = BTreeMap::new();
        for store in repositories.stores() {
            if let Some(warning) = store.layout_warning() {
                let root = PathBuf::from(store.location());
                all.findings.push(CheckFinding::warning("repository", root, warning));
            }
            let names = match store.local_root() {
                Some(root) => files::list_model_dirs(root, &mut all.findings),
                None => store.models()?,
            };
            for name in names {
                let dir = store.model_path(&name);
                let id = repositories.id(&**store, &name);
                let source = ModelSource { store: Arc::clone(store), name };
                sources.entry(id).or_default().push((dir, source));
            }
        }
        let models = Arc::new(ModelTable::default());
        let mut checked: BTreeMap<String, ModelInspection> = BTreeMap::new();
        for (id, sources) in sources {
            let (dirs, sources): (Vec<_>, Vec<_>) = sources.into_iter().unzip();
            let name = model_id::split_model_id(&id).1.to_owned();
            let found = CheckedModel { name, dirs, findings: Vec::new() };
            let mut model = ModelInspection { found, files: None, prepared: None };
            self.check_model(&id, &mut model, &sources, &models);
            checked.insert(id, model);
        }
        self.check_ensembles(&mut checked);
        for model in checked.values_mut().filter(|_| open) {
            model.open_versions();
        }
        for (name, mut model) in checked {
            model.show_repository();
            all.models.insert(name, model.found);
        }
        wait_until_closed(&self.backends, self.drain);
        Ok(all)
    }

    /// Flags that the installed backend of this name declares; 0 without one.
    fn declared_flags(&self, backend: &str) -> u32 {
        let inventory = self.backends.inventory();
        inventory.default_version(backend).map_or(0, |installed| installed.backend.facts.flags)
    }

    /// The steps of one load, without opening a version.
    fn check_model(
        &self,
        id: &str,
        model: &mut ModelInspection,
        sources: &[ModelSource],
        models: &Arc<ModelTable>,
    ) {
        let CheckedModel { dirs, findings, .. } = &mut model.found;
        let dir = dirs.first().cloned().unwrap_or_default();
        let [source] = sources else {
            let found: Vec<_> = dirs.iter().map(|dir| format!("'{}'", dir.display())).collect();
            let message = format!("not unique across all model repositories: {}", found.join(", "));
            findings.push(CheckFinding::error("repository", dir, message));
            return;
        };
        let files = match source.materialise(&CancelFlag::default()) {
            Ok(files) => model.files.insert(files),
            Err(e) => {
                findings.push(CheckFinding::error("file", dir, e.message));
                return;
            }
        };
        files::walk_model_files(files.path(), findings);
        let path = self.config_path(files.path());
        let read = match trtserver_model_config::read_with_places(&path) {
            Ok(read) => read,
            Err(e) => {
                findings.push(FindingLocator::new(&path, None).refused(&e.message, e.part));
                return;
            }
        };
        let (mut config, places) = read.unzip();
        if let Some(config) = config.as_mut().filter(|_| files.is_bare()) {
            config.name = model_id::split_model_id(id).1.to_owned();
        }
        let at = FindingLocator::new(&path, places.as_ref());
        let mut warnings: Vec<ConfigWarning> = Vec::new();
        let request = LoadRequest { config: config.clone(), ..LoadRequest::default() };
        let prepared =
            self.prepare_with(id, files, models, request, &mut |warning| warnings.push(warning));
        model.prepared = match prepared {
            Ok(prepared) => Some(prepared),
            Err(ModelRefusal { error, part, others, .. }) => {
                let reasons = std::iter::once((error, part)).chain(others);
                findings.extend(reasons.map(|(error, part)| at.refused(&error.message, part)));
                // The checks ended before these.
                let unused = |config| {
                    trtserver_model_config::without_effect(
                        config,
                        self.declared_flags(&config.backend),
                    )
                };
                warnings.extend(config.iter().flat_map(unused));
                None
            }
        };
        findings.extend(warnings.iter().map(|warning| at.warning(warning)));
        if let Some(prepared) = &model.prepared {
            findings.extend(missing_versions(prepared, &at));
            model_files(prepared, findings, &at);
            findings.extend(check_labels(prepared, &at));
        }
        findings.sort_by_key(|finding| (finding.severity, finding.file.clone(), finding.position));
    }
}

impl ModelInspection {
    fn open_versions(&mut self) {
        let Some(prepared) = &self.prepared else { return };
        if matches!(prepared.builder, ModelBuilder::Ensemble(_)) {
            return;
        }
        for version in &prepared.versions {
            if let Err(e) = prepared.open("checking", version) {
                let dir = self.found.dirs.first().cloned().unwrap_or_default().join(&version.1);
                self.found.findings.push(CheckFinding::error("open", dir, e.message));
            }
        }
    }

    /// Findings name files as they are in the repository, not as they are in the model cache.
    fn show_repository(&mut self) {
        let (Some(files), Some(dir)) = (&self.files, self.found.dirs.first()) else { return };
        if files.is_bare() {
            for finding in &mut self.found.findings {
                let file = finding.file.display().to_string();
                finding.file = PathBuf::from(files.show_origin(file));
                finding.message = files.show_origin(std::mem::take(&mut finding.message));
            }
            return;
        }
        let (copy, shown) = (files.path().display().to_string(), dir.display().to_string());
        if copy == shown {
            return;
        }
        for finding in &mut self.found.findings {
            if let Ok(below) = finding.file.strip_prefix(files.path()) {
                finding.file = dir.join(below);
            }
            finding.message = finding.message.replace(&copy, &shown);
        }
    }
}

impl ModelLoader {
    /// Ensembles whose steps form a cycle, are missing, or do not fit.
    fn check_ensembles(&self, checked: &mut BTreeMap<String, ModelInspection>) {
        let prepared = |name: &str| checked.get(name)?.prepared.as_ref();
        let named = |name: &str| -> Vec<String> {
            let ids = checked.keys().filter(|id| model_id::split_model_id(id).1 == name);
            ids.cloned().collect()
        };
        let of_step = |ensemble: &str, step: &str| {
            model_id::resolve_step_id(ensemble, step, |id| checked.contains_key(id), named)
        };
        let steps = checked.iter().filter_map(|(id, model)| {
            let steps = model.prepared.as_ref()?.step_models()?;
            Some((id.clone(), steps.iter().map(|step| of_step(id, step)).collect()))
        });
        let unique = |name: &str| checked.get(name).is_some_and(|m| m.found.dirs.len() == 1);
        let order = ensemble::load_order(&steps.collect(), unique);
        let mut reasons: HashMap<String, String> = order.refused.into_iter().collect();
        let decoupled = |model: &Model| {
            let config = model.config.as_deref();
            config.and_then(|c| c.model_transaction_policy).is_some_and(|policy| policy.decoupled)
        };
        for name in checked.keys() {
            let Some(ModelBuilder::Ensemble(builder)) = prepared(name).map(|model| &model.builder)
            else {
                continue;
            };
            let tensors = |step: &str| {
                let step = prepared(&of_step(name, step))?;
                Some((Arc::clone(prepared_signature(step)), decoupled(&step.model)))
            };
            if let Err(e) = builder.check_steps(tensors) {
                reasons.entry(name.clone()).or_insert(e.message);
            }
        }
        for (name, reason) in reasons {
            let Some(model) = checked.get_mut(&name) else { continue };
            let Some(files) = &model.files else { continue };
            let path = self.config_path(files.path());
            let places = trtserver_model_config::read_with_places(&path)
                .ok()
                .flatten()
                .map(|(_, places)| places);
            let at = FindingLocator::new(&path, places.as_ref());
            let mut finding = at.refused(&reason, ConfigPart::Field("ensemble_scheduling"));
            finding.kind = "ensemble";
            model.found.findings.push(finding);
        }
    }
}

/// Versions that the version policy names and that have no directory.
fn missing_versions(prepared: &PreparedModel, at: &FindingLocator<'_>) -> Vec<CheckFinding> {
    use trtserver_proto::v2::model_version_policy::PolicyChoice;
    let config = prepared.model.config.as_deref();
    let policy = config.and_then(|config| config.version_policy.as_ref()?.policy_choice.as_ref());
    let Some(PolicyChoice::Specific(specific)) = policy else { return Vec::new() };
    let is_served = |number: &&i64| prepared.versions.iter().any(|(v, _)| v.number == **number);
    let missing = specific.versions.iter().filter(|number| !is_served(number));
    missing
        .map(|number| {
            let field = "version_policy.specific.versions".to_owned();
            let message = format!("version {number} of the version policy has no directory");
            at.warning(&ConfigWarning { field, message })
        })
        .collect()
}

/// Model files that do not exist or are not files.
fn model_files(
    prepared: &PreparedModel,
    findings: &mut Vec<CheckFinding>,
    at: &FindingLocator<'_>,
) {
    let ModelBuilder::Backend(builder) = &prepared.builder else { return };
    let mut named: Vec<String> = builder.plans().into_iter().map(|plan| plan.file).collect();
    // Files for GPUs that this machine lacks.
    named.extend(builder.config.cc_model_filenames.values().cloned());
    named.retain(|file| !file.is_empty());
    named.sort();
    named.dedup();
    for (version, dir_name) in &prepared.versions {
        for file in &named {
            let path = builder.dir.path().join(dir_name).join(file);
            if let Err(e) = builder.check_file(dir_name, file) {
                findings.push(CheckFinding::error("file", path, e.message));
            } else if std::fs::metadata(&path).is_err() {
                let by = match builder.config.cc_model_filenames.values().any(|name| name == file) {
                    true => "cc_model_filenames",
                    false => "default_model_filename",
                };
                let number = version.number;
                let message = format!(
                    "version {number} has no model file '{file}': '{}' does not exist",
                    path.display()
                );
                let found = CheckFinding::error("file", path, message);
                findings.push(at.at_field(found, by));
            }
        }
    }
}

/// Label files whose number of lines is not the number of classes of their output.
fn check_labels(prepared: &PreparedModel, at: &FindingLocator<'_>) -> Vec<CheckFinding> {
    let signature = prepared_signature(prepared);
    let mut findings = Vec::new();
    for output in &signature.outputs {
        let Some(labels) = &output.labels else { continue };
        let fixed: Option<Vec<usize>> =
            output.dims.iter().map(|dim| usize::try_from(*dim).ok()).collect();
        // The number of classes is known if no dimension is variable.
        let classes =
            fixed.and_then(|dims| dims.iter().try_fold(1, |n: usize, d| n.checked_mul(*d)));
        if let Some(classes) = classes.filter(|classes| *classes != labels.len()) {
            let message = format!(
                "the label file of output '{}' has {} labels, but the output has {classes} classes",
                output.name,
                labels.len()
            );
            findings.push(at.warning_of_kind("labels", "output", &message));
        }
    }
    findings
}

fn prepared_signature(prepared: &PreparedModel) -> &Arc<ModelSignature> {
    match &prepared.builder {
        ModelBuilder::Backend(builder) => &builder.signature,
        ModelBuilder::Ensemble(builder) => builder.signature(),
    }
}

/// Waits for the threads of opened instances: none may be inside a backend when the process exits.
fn wait_until_closed(backends: &Backends, limit: Duration) {
    let start = Instant::now();
    while backends.live_models() > 0 && start.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(2));
    }
}
