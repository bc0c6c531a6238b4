//! The repository on disk into the live table: all of it at start, one model at a time later (`control`).

use super::build::Prepared;
use super::complete::from_backend;
use super::config::{self, ENSEMBLE, FILE_NAME, Machine, Preference};
use super::disk::{Print, listing, scan};
use super::ensemble;
use super::job::{Job, Source};
use super::labels::Labels;
use super::policy::{Found, versions_of_entries, wanted};
use super::schedule::Schedule;
use super::{Model, Origin, Repository, Version, warmup};
use crate::error::{Code, Error, Result};
use crate::instance::priority::Priority;
use crate::plugin::Backends;
use crate::plugin::backend::Backend;
use crate::request::Signature;
use crate::stats::VersionStats;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_instance_group::Kind;

/// What loading works with.
pub struct Loader {
    pub backends: Arc<Backends>,
    pub machine: Machine,
    /// Refuse configurations that leave something out, instead of asking the backend.
    pub strict: bool,
    /// Models loaded at the same time.
    pub threads: usize,
    pub drain: Duration,
    /// Models may be loaded again: remember what their directories were like.
    pub again: bool,
}

/// What a model is loaded from and in place of.
#[derive(Default)]
pub(super) struct Ask {
    /// Instead of the file's.
    pub config: Option<ModelConfig>,
    /// The model as it is now, whose counters go on.
    pub old: Option<Arc<Model>>,
    pub print: Option<Print>,
    /// By name, and not for an ensemble's sake.
    pub by_name: bool,
}

/// What became of a load.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub loaded: usize,
    /// Models refused and versions failed, as texts that name them.
    pub failures: Vec<String>,
}

impl Outcome {
    fn add(&mut self, result: Result<(), String>) {
        match result {
            Ok(()) => self.loaded += 1,
            Err(text) => self.failures.push(text),
        }
    }
}

impl Loader {
    /// Reads all repositories, publishes their models, loads every wanted version; with `only`, of those models and
    /// of those that they need.
    ///
    /// One bad model never keeps another from being served; the caller decides what failures mean.
    ///
    /// # Errors
    /// A repository itself cannot be read.
    pub fn load_all(
        &self,
        repository: &Arc<Repository>,
        roots: &[PathBuf],
        only: Option<&[String]>,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut table = HashMap::new();
        let mut jobs = BTreeMap::new();
        let dirs = scan(roots)?;
        let mut missing = Vec::new();
        let named = only.map_or_else(|| dirs.keys().cloned().collect(), <[String]>::to_vec);
        let mut open: VecDeque<(String, bool)> =
            named.into_iter().map(|name| (name, true)).collect();
        let mut refuse = |table: &mut HashMap<_, _>, name: &str, e: Error| {
            tracing::error!("failed to load model '{name}': {e}");
            outcome.failures.push(format!("'{name}': {e}"));
            let refused = Model::new(name, None, Some(e.message), BTreeMap::new());
            table.insert(name.to_owned(), refused);
        };
        let mut seen = BTreeSet::new();
        // First the names that were asked for, then what they need: that must not be taken for asked for.
        while let Some((name, by_name)) = open.pop_front() {
            let Some((name, dirs)) = dirs.get_key_value(&name) else {
                if by_name {
                    tracing::error!(
                        "failed to load '{name}', failed to poll from model repository"
                    );
                    missing.push(format!("'{name}': failed to poll from model repository"));
                }
                continue;
            };
            if !seen.insert(name) {
                continue;
            }
            let print = dirs.first().filter(|_| self.again).and_then(|dir| Print::of(dir).ok());
            match self.model(name, dirs, repository, Ask { print, by_name, ..Ask::default() }) {
                Ok(job) => {
                    open.extend(job.uses().into_iter().flatten().map(|step| (step, false)));
                    jobs.insert(name.clone(), job);
                }
                Err(e) => refuse(&mut table, name, e),
            }
        }
        let ensembles = jobs.iter().filter_map(|(name, job)| job.uses().map(|u| (name.clone(), u)));
        let order = ensemble::order(&ensembles.collect(), |name| {
            dirs.get(name).is_some_and(|dirs| dirs.len() == 1)
        });
        for (name, why) in order.refused {
            jobs.remove(&name);
            refuse(&mut table, &name, Error::invalid(why));
        }
        outcome.failures.extend(missing);
        // Before any instance opens: the others are told to give way then.
        let max_asked = jobs.values().any(|job| job.priority() == Priority::Max);
        jobs.values_mut().for_each(|job| job.tell(max_asked));
        for (name, job) in &jobs {
            tracing::info!("New status tracking for model '{name}'");
            table.insert(name.clone(), Arc::clone(&job.model));
        }
        repository.publish(table);
        let last: Vec<Job> = order.names.iter().filter_map(|name| jobs.remove(name)).collect();
        let jobs: Vec<Job> = jobs.into_values().collect();
        self.load_jobs(&jobs, &mut outcome);
        // One after another: each may need the one before, and none takes long.
        for job in &last {
            job.versions.iter().for_each(|version| outcome.add(job.load(version)));
        }
        Ok(outcome)
    }

    fn load_jobs(&self, jobs: &[Job], outcome: &mut Outcome) {
        let work: Vec<(&Job, &(Arc<Version>, String))> =
            jobs.iter().flat_map(|j| j.versions.iter().map(move |v| (j, v))).collect();
        let next = AtomicUsize::new(0);
        let threads = self.threads.clamp(1, work.len().max(1));
        let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let mut results = Vec::new();
                        while let Some((job, version)) =
                            work.get(next.fetch_add(1, Ordering::Relaxed))
                        {
                            results.push(job.load(version));
                        }
                        results
                    })
                })
                .collect();
            let broken = |_| vec![Err("loading panicked; see the log".to_owned())];
            handles.into_iter().flat_map(|h| h.join().unwrap_or_else(broken)).collect()
        });
        results.into_iter().for_each(|result| outcome.add(result));
    }

    /// Settles a model's configuration.
    pub(super) fn model(
        &self,
        name: &str,
        dirs: &[PathBuf],
        repository: &Arc<Repository>,
        ask: Ask,
    ) -> Result<Job> {
        let [dir] = dirs else {
            return Err(Error::invalid(format!(
                "failed to poll model '{name}': not unique across all model repositories"
            )));
        };
        let entries = listing(dir)?;
        let found = versions_of_entries(entries.iter().map(|(n, is_dir)| (n.as_str(), *is_dir)));
        for warning in &found.warnings {
            tracing::warn!("model '{name}': {warning}");
        }
        let mut config = match ask.config {
            Some(config) => config,
            None => self.read(name, dir)?,
        };
        let mut listings = Vec::new();
        for (number, entry) in &found.versions {
            let names = listing(&dir.join(entry))?.into_iter().map(|(n, _)| n).collect();
            listings.push((*number, names));
        }
        config::complete(&mut config, name, &listings, &*self.backends)
            .map_err(|e| self.with_broken(config_error(e)))?;
        // Ensembles have none; if theirs names one, the checks below say so.
        let backend = match config.platform == ENSEMBLE {
            true => None,
            false => Some(self.backend(&config)?),
        };
        if let Some(backend) = backend.as_ref().filter(|_| !self.strict) {
            from_backend(&mut config, backend, dir, &found)?;
        }
        let preferred = backend.as_ref().map_or(Vec::new(), |backend| preferences(backend));
        config::normalise(&mut config, &self.machine, &preferred);
        for warning in config::check(&config, &self.machine).map_err(config_error)? {
            tracing::warn!("model '{name}': {warning}");
        }
        let labels = Labels::load(dir, &config.output).map_err(config_error)?;
        let mut signature = Signature::new(&config, |output| labels.of(output).cloned())?;
        let schedule = Schedule::new(&config, &mut signature, dir)?;
        let signature = Arc::new(signature);
        let warmup = warmup::samples(&config, &signature, dir).map_err(config_error)?;
        let config = Arc::new(config);
        let source = match backend {
            None => {
                Source::Ensemble(Arc::new(ensemble::Prepared::new(&config, signature, repository)))
            }
            Some(backend) => Source::Backend(Box::new(Prepared {
                dir: dir.clone(),
                config: Arc::clone(&config),
                signature,
                schedule,
                max_asked: false,
                backend,
                drain: self.drain,
                warmup,
            })),
        };
        let old = ask.old.as_deref();
        let versions = self.versions(&config, &found, source.instances(), old)?;
        let mut by_number: BTreeMap<_, _> =
            versions.iter().map(|(v, _)| (v.number, Arc::clone(v))).collect();
        for version in old.into_iter().flat_map(|old| old.versions.values()) {
            // What is on disk no more was to be seen once, and is forgotten.
            if version.is_loaded() || found.versions.contains_key(&version.number) {
                by_number.entry(version.number).or_insert_with(|| version.retired());
            }
        }
        let origin = Origin {
            print: ask.print,
            ensemble: match &source {
                Source::Backend(_) => None,
                Source::Ensemble(prepared) => Some(Arc::clone(prepared)),
            },
            wanted: true.into(),
            asked: ask.by_name.into(),
        };
        let model = Model::of(name, config, by_number, origin);
        Ok(Job { source, model, versions })
    }

    fn backend(&self, config: &ModelConfig) -> Result<Arc<Backend>> {
        let (name, backend) = (&config.name, &config.backend);
        self.backends.get(backend).cloned().ok_or_else(|| {
            Error::unsupported(format!("backend '{backend}' of model '{name}' is not there"))
        })
    }

    /// A backend that is missed may be one of the files that could not be opened.
    fn with_broken(&self, mut e: Error) -> Error {
        if e.code == Code::Unsupported {
            for broken in &self.backends.broken {
                e.message.push_str(&format!("; not usable: {broken}"));
            }
        }
        e
    }

    pub(super) fn read(&self, name: &str, dir: &Path) -> Result<ModelConfig> {
        let path = dir.join(FILE_NAME);
        match config::read(&path).map_err(config_error)? {
            Some(config) => Ok(config),
            None if self.strict => Err(Error::not_found(format!(
                "'{}' does not exist; it may be left out with --strict-model-config=false",
                path.display()
            ))),
            None => Ok(ModelConfig { name: name.to_owned(), ..Default::default() }),
        }
    }

    fn versions(
        &self,
        config: &ModelConfig,
        found: &Found,
        instances: usize,
        old: Option<&Model>,
    ) -> Result<Vec<(Arc<Version>, String)>> {
        let policy = config.version_policy.clone().unwrap_or_default();
        let existing: Vec<i64> = found.versions.keys().copied().collect();
        let wanted = wanted(&policy, &existing);
        for missing in &wanted.missing {
            tracing::error!(
                "model '{}': version {missing} of its version policy does not exist",
                config.name
            );
        }
        let wanted = wanted.or_refuse(&config.name).map_err(config_error)?;
        Ok(wanted
            .versions
            .iter()
            .filter_map(|number| {
                let stats = match old.and_then(|old| old.versions.get(number)) {
                    Some(old) => old.stats.continued(instances),
                    None => Arc::new(VersionStats::new(instances)),
                };
                Some((Version::new(*number, stats), found.versions.get(number)?.clone()))
            })
            .collect())
    }
}

/// The instances that a backend would rather have.
fn preferences(backend: &Backend) -> Vec<Preference> {
    let preferred = backend.facts.preferred.iter().filter_map(|(kind, count)| {
        let kind = Kind::try_from(*kind as i32).ok()?;
        Some(Preference { kind, count: *count as i32 })
    });
    preferred.collect()
}

pub(super) fn config_error(e: config::ConfigError) -> Error {
    let code = match e.fault {
        config::Fault::Invalid => Code::InvalidArg,
        config::Fault::Unsupported => Code::Unsupported,
        config::Fault::Unreadable => Code::Internal,
    };
    Error::new(code, e.message)
}
