//! Keeps the inventory of backends up to date, and selects the backend version for a model.
//!
//! The directories are scanned again before a model is loaded. A model gets the newest version that
//! opens, or the one that it requests, and keeps it. A file that was removed or replaced stays in
//! use by the models that have it, and no further model gets it. A file that cannot be used is
//! logged and skipped until it changes.
//!
//! A library runs code as soon as it is loaded, and may end the process. So a file that appears
//! while the server runs is loaded by a child process first, which reports the backend's facts; the
//! server loads it with the first model that needs it here. At the start files are loaded directly,
//! which saves some milliseconds each: there a crash ends a server that serves nothing yet, and the
//! crash report names the file.

mod scan;
mod shared_scan;

use super::adapters::AdapterOptions;
use super::inventory::{BackendVersion, Inventory};
use crate::backend::PluginBackend;
use crate::backend_facts::BackendFacts;
use crate::child_processes::ChildProcesses;
use crate::isolation;
use crate::isolation::Isolation;
use crate::plugin_file::PluginFile;
use arc_swap::ArcSwap;
use shared_scan::SharedScan;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Code, Error, Result};
use trtserver_proto::v2::ModelConfig;

/// The model parameter that requests a version.
pub const VERSION_PARAMETER: &str = "backend_version";
/// The backend setting with the default version. Taken by the host, and passed only to plugins that
/// declare `OWN_VERSION_SETTING`.
const VERSION_SETTING: &str = "version";

/// Where backends are looked for.
#[derive(Clone, Debug, Default)]
pub struct BackendDirs {
    /// `--backend-dir`.
    pub given: Vec<PathBuf>,
    /// That of the installation, for the backends that none of `given` has.
    pub default: Vec<PathBuf>,
}

/// The installed backends of all directories, scanned again before each load.
pub struct Backends {
    dirs: BackendDirs,
    child_processes: Arc<dyn ChildProcesses>,
    adapters: AdapterOptions,
    /// By backend name; the empty name applies to all.
    settings: BTreeMap<String, BTreeMap<String, String>>,
    /// The setting `version`, by backend name.
    versions: Arc<BTreeMap<String, String>>,
    /// The start line is one of v1.x.
    trtis_rules: bool,
    /// One attempt to open a failing version is made for each scan.
    scans: SharedScan,
    inventory: ArcSwap<Inventory>,
    /// Open models of all backends.
    live_models: Arc<AtomicUsize>,
}

/// An installed version of a backend, for listings.
pub struct BackendListing {
    pub facts: BackendFacts,
    pub file: PluginFile,
    /// Where the backend's models run unless their configuration sets it.
    pub isolation: Isolation,
    /// Models that request no version get this one.
    pub default: bool,
    /// The open backend that its models share, if there are any.
    pub in_use: Weak<PluginBackend>,
}

impl Backends {
    /// Opens every backend of `dirs`. `settings` by backend name; the empty name applies to all.
    /// `trtis_rules`: the start line is one of v1.x.
    ///
    /// A file that cannot be opened is logged and skipped, so that it does not affect the others.
    ///
    /// # Errors
    /// A directory cannot be read; a `plugin.toml` is malformed; two files have the same name and
    /// version; two backends declare one platform.
    pub fn open(
        dirs: BackendDirs,
        settings: &BTreeMap<String, BTreeMap<String, String>>,
        adapters: AdapterOptions,
        trtis_rules: bool,
        child_processes: Arc<dyn ChildProcesses>,
    ) -> Result<Self> {
        let mut settings = settings.clone();
        let mut configured = BTreeMap::new();
        for (name, chosen) in settings.iter_mut().filter(|(name, _)| !name.is_empty()) {
            configured
                .extend(chosen.remove(VERSION_SETTING).map(|version| (name.clone(), version)));
        }
        let versions = Arc::new(configured);
        let empty = Inventory { configured: Arc::clone(&versions), ..Inventory::default() };
        let backends = Self {
            dirs,
            child_processes,
            adapters,
            settings,
            versions,
            trtis_rules,
            scans: SharedScan::default(),
            inventory: ArcSwap::default(),
            live_models: Arc::default(),
        };
        let listing = backends.scan_dirs();
        if let Some((_, e)) = listing.unreadable.first() {
            return Err(e.clone());
        }
        if let Some((_, e)) = listing.bad_manifests.first() {
            return Err(e.clone());
        }
        let inventory = backends.update(listing, &empty, true)?;
        for name in backends.settings.keys().filter(|n| !n.is_empty()) {
            if inventory.default_version(name).is_none() {
                tracing::warn!("--backend-config names backend '{name}', which is not installed");
            }
        }
        backends.inventory.store(Arc::new(inventory));
        Ok(backends)
    }

    /// Names that the model file of a version has without a configuration, of all backends.
    pub fn default_files(&self) -> BTreeSet<String> {
        let inventory = self.inventory.load();
        let files = |i: &Arc<BackendVersion>| {
            let platforms = i.backend.facts.platforms.iter().map(|(_, file)| file.clone());
            platforms.chain(i.backend.facts.default_file.clone()).collect::<Vec<_>>()
        };
        inventory.usable.iter().flat_map(files).filter(|file| !file.is_empty()).collect()
    }

    /// Model versions that are open, or being closed.
    pub fn live_models(&self) -> usize {
        self.live_models.load(Ordering::Acquire)
    }

    /// The backend for a model: the version that it requests (parameter `backend_version`), else
    /// the configured default, else the newest. Where several versions come into question it is the
    /// newest that opens, and it is open; `cancel` breaks off the opening in a child process.
    ///
    /// # Errors
    /// No backend of that name, or no such version, is usable. The text lists the installed
    /// versions and the reasons why others cannot be used.
    pub fn for_model(
        &self,
        config: &ModelConfig,
        cancel: &CancelFlag,
    ) -> Result<Arc<PluginBackend>> {
        let inventory = self.inventory.load();
        let (model, name) = (&config.name, &config.backend);
        let parameter = config.parameters.get(VERSION_PARAMETER).map(|value| &value.string_value);
        let (requested, source) = match (parameter, inventory.configured_version(name)) {
            (Some(version), _) => (Some(version), format!("parameter '{VERSION_PARAMETER}'")),
            (None, version) => (version, format!("--backend-config={name},{VERSION_SETTING}=…")),
        };
        let candidates: Vec<_> = match requested {
            Some(requested) => inventory.matching(name, requested),
            None => inventory.versions(name).collect(),
        };
        match (candidates.as_slice(), requested) {
            // There is no alternative: it opens with the model, on its loader thread.
            ([only], _) => Ok(only.shared()),
            ([_, ..], _) => self.newest_that_opens(config, &candidates, cancel),
            ([], Some(requested)) if inventory.versions(name).next().is_some() => {
                let installed: Vec<_> =
                    inventory.versions(name).map(|i| format!("'{}'", i.version())).collect();
                let mut text = format!(
                    "model '{model}' requests version '{requested}' of backend '{name}' ({source}), which is not \
                     installed; installed: {}",
                    installed.join(", ")
                );
                for broken in inventory.unusable.iter().filter(|u| u.name == *name) {
                    text.push_str(&format!("; not usable: {}", broken.error));
                }
                Err(Error::unsupported(text))
            }
            ([], _) => Err(Error::unsupported(format!(
                "backend '{name}' of model '{model}' is not installed"
            ))),
        }
    }

    /// The backend `name` for one model, whose library an adapter opens from the first of `dirs`
    /// that has it: the model's directories. `None` if none has it, or if the installed backend of
    /// that name is an adapter's, which looks there itself. An installed plugin of that name does
    /// not count: what is in the model's directory was put there for this model.
    ///
    /// `judge` is asked about the library before it is touched.
    ///
    /// # Errors
    /// The library cannot be used; that of `judge`.
    pub fn in_model_dirs(
        &self,
        name: &str,
        dirs: &[PathBuf],
        judge: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Option<Arc<PluginBackend>>> {
        let inventory = self.inventory.load();
        if name.is_empty() || name.contains('/') {
            return Ok(None);
        }
        let mut installed = inventory.versions(name).peekable();
        if installed.peek().is_some() && installed.all(|version| version.backend.is_adapted()) {
            return Ok(None);
        }
        let adapters = &inventory.adapters;
        let in_dir =
            |dir: &PathBuf| adapters.iter().find_map(|adapter| adapter.in_model_dir(name, dir));
        let Some(candidate) = dirs.iter().find_map(in_dir) else { return Ok(None) };
        let candidate = candidate?;
        judge(candidate.file.path())?;
        let file = candidate.file.path().display().to_string();
        let identity =
            candidate.file.identity().map_err(|e| Error::internal(format!("'{file}': {e}")))?;
        let installed = inventory.usable.iter().map(|installed| &**installed);
        let found = self.install(candidate, identity, true, installed)?;
        tracing::info!("backend '{name}' {} is the model's own, in {file}", found.version());
        Ok(Some(found.shared()))
    }

    fn newest_that_opens(
        &self,
        config: &ModelConfig,
        candidates: &[&Arc<BackendVersion>],
        cancel: &CancelFlag,
    ) -> Result<Arc<PluginBackend>> {
        let scan = self.scans.latest();
        let mut failures = Vec::new();
        for installed in candidates {
            let isolation = isolation::choose_isolation(config, installed.backend.isolation)?;
            match installed.open(isolation, scan, cancel) {
                Ok(backend) => return Ok(backend),
                Err(e) if cancel.is_cancelled() => return Err(e),
                Err(e) => failures.push((installed.version(), e)),
            }
        }
        let reasons: Vec<_> =
            failures.iter().map(|(version, e)| format!("'{version}': {e}")).collect();
        let code = failures.first().map_or(Code::Internal, |(_, e)| e.code);
        Err(Error::new(
            code,
            format!("no version of backend '{}' opens: {}", config.backend, reasons.join("; ")),
        ))
    }

    /// The default version of a backend.
    pub fn get(&self, name: &str) -> Option<Arc<PluginBackend>> {
        self.inventory.load().default_version(name).map(|i| i.shared())
    }

    /// Files that are named like backends and cannot be used, and the reasons.
    pub fn unusable(&self) -> Vec<(PathBuf, Error)> {
        let inventory = self.inventory.load();
        let files = inventory.unusable.iter().map(|u| (u.path.clone(), u.error.clone()));
        let unopened = inventory.usable.iter().filter_map(|i| {
            let e = i.failure()?;
            let text = format!("backend '{}' {} does not open: {e}", i.name(), i.version());
            Some((i.backend.file.path().to_owned(), Error::new(e.code, text)))
        });
        files.chain(unopened).collect()
    }

    /// The usable backends by name, the newest version of each first.
    pub fn list(&self) -> Vec<BackendListing> {
        let inventory = self.inventory.load();
        let listed =
            inventory.usable.iter().filter(|i| i.failure().is_none()).map(|i| BackendListing {
                facts: i.backend.facts.clone(),
                file: i.backend.file.clone(),
                isolation: i.backend.isolation.by_default(),
                in_use: i.in_use.lock().clone(),
                default: inventory
                    .default_version(i.name())
                    .is_some_and(|default| Arc::ptr_eq(default, i)),
            });
        listed.collect()
    }

    /// What the latest scan found.
    pub fn inventory(&self) -> Arc<Inventory> {
        self.inventory.load_full()
    }

    /// All directories, in the order in which they are searched.
    pub fn dirs(&self) -> Vec<&Path> {
        let BackendDirs { given, default } = &self.dirs;
        given.iter().chain(default).map(PathBuf::as_path).collect()
    }
}
