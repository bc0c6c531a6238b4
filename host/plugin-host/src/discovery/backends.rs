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

use super::adapters::AdapterOptions;
use super::candidate::Candidate;
use super::directories::{self, Listing};
use super::inventory::{BackendVersion, Inventory, UnusableFile, file_stamps};
use super::version;
use crate::backend::PluginBackend;
use crate::backend_facts::BackendFacts;
use crate::child_processes::ChildProcesses;
use crate::isolation;
use crate::isolation::Isolation;
use crate::library;
use crate::plugin_file::{AdaptedLibrary, Identity, PluginFile};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Code, Error, Result};
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_proto::v2::ModelConfig;

/// The model parameter that requests a version.
pub const VERSION_PARAMETER: &str = "backend_version";
/// The backend setting with the default version. Taken by the host, and passed only to plugins that
/// declare `OWN_VERSION_SETTING`.
const VERSION_SETTING: &str = "version";

/// The backend setting with the batch size of completed models.
const BATCH_SIZE_SETTING: &str = "default-max-batch-size";

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
    /// Held during a scan, which may open libraries.
    scan_lock: Mutex<()>,
    /// Number of the latest scan: one attempt to open a failing version is made for each.
    scan: AtomicU64,
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
            scan_lock: Mutex::new(()),
            scan: AtomicU64::new(0),
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

    fn scan_dirs(&self) -> Listing {
        let BackendDirs { given, default } = &self.dirs;
        directories::scan_with_defaults(given, default, &self.adapters.dirs)
    }

    /// Model versions that are open, or being closed.
    pub fn live_models(&self) -> usize {
        self.live_models.load(Ordering::Acquire)
    }

    /// Scans the directories for changes. The backends of a directory that cannot be read stay, and
    /// a new file that cannot be used affects no installed one.
    pub fn refresh(&self) {
        let begun = self.scan.load(Ordering::Acquire);
        let _one = self.scan_lock.lock();
        if self.scan.load(Ordering::Acquire) != begun {
            // While this thread waited for another scan, a further one has begun and ended.
            return;
        }
        self.scan.fetch_add(1, Ordering::AcqRel);
        let before = self.inventory.load_full();
        let listing = self.scan_dirs();
        for (_, e) in &listing.unreadable {
            tracing::warn!("{e}; its backends stay as they are");
        }
        match self.update(listing, &before, false) {
            Ok(inventory) => self.inventory.store(Arc::new(inventory)),
            Err(e) => tracing::error!("{e}"),
        }
    }

    /// The inventory after a scan, given the one before. A conflict is an error at the start; later
    /// the new file is rejected.
    fn update(&self, listing: Listing, before: &Inventory, at_start: bool) -> Result<Inventory> {
        let mut now =
            Inventory { configured: Arc::clone(&before.configured), ..Inventory::default() };
        let mut new = Vec::new();
        for (candidate, e) in listing.bad_manifests {
            // Settings are read when the library is opened: an installed one does not need the
            // manifest any more.
            let identity = candidate.file.identity().ok();
            let installed = identity.and_then(|identity| before.by_identity(&identity));
            match installed {
                Some(installed) => now.usable.push(Arc::clone(installed)),
                None => now.reject(before, &candidate, false, e),
            }
        }
        for (candidate, e) in listing.unopenable {
            now.reject(before, &candidate, false, e);
        }
        for candidate in listing.candidates {
            let stamps = file_stamps(&candidate.file);
            // Otherwise it was removed after the directory was listed.
            let Ok(identity) = candidate.file.identity() else { continue };
            let path = candidate.file.path();
            let unchanged = |u: &&UnusableFile| !u.recheck && u.is_still(path, &stamps);
            let same_file = |(_, other): &(Candidate, Identity)| *other == identity;
            if now.by_identity(&identity).is_some() || new.iter().any(same_file) {
                // Another name of the same file.
            } else if let Some(installed) = before.by_identity(&identity) {
                now.usable.push(Arc::clone(installed));
            } else if let Some(unusable) = before.unusable.iter().find(unchanged) {
                now.unusable.push(unusable.clone());
            } else {
                new.push((candidate, identity));
            }
        }
        for (dir, _) in listing.unreadable {
            let kept = before.usable.iter().filter(|i| i.backend.file.path().starts_with(&dir));
            let kept: Vec<_> =
                kept.filter(|i| now.by_identity(&i.identity).is_none()).cloned().collect();
            now.usable.extend(kept);
        }
        for gone in before.usable.iter().filter(|i| now.by_identity(&i.identity).is_none()) {
            let (name, version) = (gone.name(), gone.version());
            let file = gone.backend.file.path().display();
            tracing::info!(
                "the file of backend '{name}' {version}, {file}, was removed or replaced; models that use it keep it"
            );
        }
        now.adapters = listing.adapters;
        now.sort();
        // Libraries of one directory share a manifest and its warnings.
        let warnings: BTreeSet<_> = new.iter().flat_map(|(new, _)| &new.warnings).collect();
        warnings.into_iter().for_each(|warning| tracing::warn!("{warning}"));
        // If two versions cannot be loaded side by side, the newest is.
        new.sort_by(|(a, _), (b, _)| {
            let version = |of: &Candidate| of.version.clone().unwrap_or_default();
            a.name.cmp(&b.name).then_with(|| version::compare_versions(&version(b), &version(a)))
        });
        let mut opened = Vec::new();
        for (candidate, identity) in new {
            let found = now.usable.iter().map(|installed| &**installed);
            let found = found.chain(opened.iter().map(|(_, installed)| installed));
            match self.install(candidate.clone(), identity, !at_start, found) {
                Ok(installed) => opened.push((candidate, installed)),
                // No child process could be started: which is not a fault of the file.
                Err(e) => now.reject(before, &candidate, e.code == Code::Unavailable, e),
            }
        }
        let is_default =
            |candidate: &Candidate| directories::is_below(candidate, &self.dirs.default);
        // Of two that claim one platform, the one that the operator has added serves it.
        opened.sort_by(|(in_a, a), (in_b, b)| {
            let by_version = || version::compare_versions(b.version(), a.version());
            is_default(in_a).cmp(&is_default(in_b)).then_with(by_version)
        });
        for (candidate, installed) in opened {
            let (name, version) = (installed.name().to_owned(), installed.version().to_owned());
            match now.add(Arc::new(installed)) {
                Ok(()) => {
                    let file = candidate.file.path().display();
                    let through = match &candidate.file.adapted {
                        Some(adapted) => format!(", opened through {}", adapted.adapter),
                        None => String::new(),
                    };
                    tracing::info!("found backend '{name}' {version} in {file}{through}");
                }
                Err(e) if at_start && !is_default(&candidate) => return Err(e),
                Err(e) => now.reject(before, &candidate, true, e),
            }
        }
        log_claimants(&now, before);
        Ok(now)
    }

    /// `found` are the backends found so far: those of one adapter have their facts in common.
    fn install<'a>(
        &self,
        mut candidate: Candidate,
        identity: Identity,
        probe: bool,
        mut found: impl Iterator<Item = &'a BackendVersion>,
    ) -> Result<BackendVersion> {
        let PluginFile { library, adapted } = &candidate.file;
        library::check_file(library).map_err(|why| library::refusal_error(library, why))?;
        let mut sibling = None;
        if let Some(AdaptedLibrary { file, .. }) = adapted {
            if file.extension().is_some_and(|end| end == std::env::consts::DLL_EXTENSION) {
                library::check_file(file).map_err(|why| library::refusal_error(file, why))?;
            }
            for (key, value) in &self.adapters.settings {
                candidate.settings.entry(key.clone()).or_insert_with(|| value.clone());
            }
            sibling = found.find(|other| other.identity.library == identity.library);
        }
        let mut chosen = self.settings.get("").cloned().unwrap_or_default();
        chosen.extend(self.settings.get(&candidate.name).cloned().unwrap_or_default());
        let (dir, path) = (candidate.version.clone(), candidate.file.path().to_owned());
        let sibling = sibling.map(|installed| &installed.backend);
        let mut backend = PluginBackend::load(
            candidate,
            identity.clone(),
            &chosen,
            probe,
            sibling,
            &self.child_processes,
            &self.live_models,
        )?;
        if self.trtis_rules && backend.facts.flags & backend_flags::V1_BATCH_SIZE != 0 {
            let set = backend.settings.entry(BATCH_SIZE_SETTING.to_owned());
            set.or_insert_with(|| "1".to_owned());
        }
        if backend.facts.flags & backend_flags::OWN_VERSION_SETTING != 0
            && let Some(version) = self.versions.get(&backend.facts.name)
        {
            backend.settings.insert(VERSION_SETTING.to_owned(), version.clone());
        }
        let declared = &backend.facts.version;
        if let Some(dir) = dir.filter(|dir| !version::matches_requested(declared, dir)) {
            tracing::warn!(
                "backend '{}' declares version '{declared}' but is in a directory '{dir}'; the declared version counts",
                path.display()
            );
        }
        Ok(BackendVersion { identity, backend, in_use: Mutex::default(), logged: Mutex::default() })
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
        let scan = self.scan.load(Ordering::Relaxed);
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

/// Logs which file serves a backend that a plugin and an adapter offer, when that has changed.
fn log_claimants(now: &Inventory, before: &Inventory) {
    for name in now.names() {
        let offers = |inventory: &Inventory| -> Vec<String> {
            let offer = |i: &Arc<BackendVersion>| {
                format!("'{}' in {}", i.version(), i.backend.file.path().display())
            };
            inventory.versions(name).map(offer).collect()
        };
        let kinds = || now.versions(name).map(|i| i.backend.file.adapted.is_some());
        let mixed = kinds().any(|adapted| adapted) && kinds().any(|adapted| !adapted);
        let all = offers(now);
        if mixed && all != offers(before) {
            let default = now.default_version(name).map_or("", |i| i.version());
            tracing::info!(
                "backend '{name}' is offered as {}; models get '{default}' unless their parameter \
                 '{VERSION_PARAMETER}' selects another",
                all.join(" and as ")
            );
        }
    }
}
