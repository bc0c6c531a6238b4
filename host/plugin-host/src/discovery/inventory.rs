//! The inventory: all installed backends in all their versions, and which version is the default.

use super::adapters::Adapter;
use super::candidate::Candidate;
use super::manifest;
use super::version;
use crate::backend::PluginBackend;
use crate::isolation::Isolation;
use crate::plugin_file::{Identity, PluginFile};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Error, Result};
use trtserver_library_file::FileStamp;
use trtserver_plugin_api::abi::descriptors::backend_flags;

/// What the latest scan of the backend directories found. Replaced as a whole by the next scan.
#[derive(Default)]
pub struct Inventory {
    /// By name, the newest version of each first.
    pub usable: Vec<Arc<BackendVersion>>,
    pub unusable: Vec<UnusableFile>,
    /// Default versions chosen by the operator, by backend name.
    pub configured: Arc<BTreeMap<String, String>>,
    /// In the order of preference.
    pub adapters: Vec<Adapter>,
}

/// One version of a backend.
pub struct BackendVersion {
    pub identity: Identity,
    /// Holds the facts and is never opened: models share `in_use`, so that the plugin closes with
    /// its last model.
    pub backend: PluginBackend,
    pub in_use: Mutex<Weak<PluginBackend>>,
    /// Messages of failures to open that were logged, by isolation: models that load at the same
    /// time find the same failure.
    pub logged: Mutex<[Option<String>; 2]>,
}

/// A file that is named like a backend and cannot be used.
#[derive(Clone)]
pub struct UnusableFile {
    /// Name of the backend, taken from the file name.
    pub name: String,
    pub path: PathBuf,
    /// It is opened again when one of its files has changed.
    stamps: Stamps,
    /// The cause may lie outside the file, such as another file of the same version: checked again
    /// at every scan.
    pub recheck: bool,
    /// Names the file.
    pub error: Error,
}

impl BackendVersion {
    pub fn name(&self) -> &str {
        &self.backend.facts.name
    }

    pub fn version(&self) -> &str {
        &self.backend.facts.version
    }

    /// The open backend that its models share, or a new one for the first model.
    pub fn shared(&self) -> Arc<PluginBackend> {
        let mut in_use = self.in_use.lock();
        in_use.upgrade().unwrap_or_else(|| {
            let backend = Arc::new(self.backend.unopened());
            *in_use = Arc::downgrade(&backend);
            backend
        })
    }

    /// As [`BackendVersion::shared`], open. A version that failed since scan number `scan` is not
    /// tried again.
    ///
    /// # Errors
    /// It does not open. Logged unless the reason is known.
    pub fn open(
        &self,
        isolation: Isolation,
        scan: u64,
        cancel: &CancelFlag,
    ) -> Result<Arc<PluginBackend>> {
        if let Some((at, error)) = self.backend.open_failure(isolation)
            && at == Some(scan)
        {
            return Err(error);
        }
        let backend = self.shared();
        let opened = backend.open_ahead(isolation, scan, cancel);
        if !cancel.is_cancelled() {
            self.log(isolation, opened.as_ref().err());
        }
        opened.map(|()| backend)
    }

    /// Logs a failure to open unless the same was logged since it last opened.
    fn log(&self, isolation: Isolation, failure: Option<&Error>) {
        let message = failure.map(|error| error.message.clone());
        let known = std::mem::replace(&mut self.logged.lock()[isolation as usize], message);
        if let Some(error) = failure
            && known.as_ref() != Some(&error.message)
        {
            tracing::error!(
                "backend '{}' {} from {} cannot be opened; models get another version until a later load finds \
                 that it opens: {error}",
                self.name(),
                self.version(),
                self.backend.file.path().display()
            );
        }
    }

    /// Why no model gets it: it did not open when it was last tried.
    pub fn failure(&self) -> Option<Error> {
        let (_, error) = self.backend.open_failure(self.backend.isolation.by_default())?;
        (self.in_use.lock().strong_count() == 0).then_some(error)
    }
}

impl Inventory {
    /// All versions of `name`, the newest first.
    pub fn versions(&self, name: &str) -> impl Iterator<Item = &Arc<BackendVersion>> {
        self.usable.iter().filter(move |i| i.name() == name)
    }

    /// The default version chosen by the operator, unless that setting is the backend's own.
    pub fn configured_version(&self, name: &str) -> Option<&String> {
        let is_own = |i: &Arc<BackendVersion>| {
            i.backend.facts.flags & backend_flags::OWN_VERSION_SETTING != 0
        };
        self.configured.get(name).filter(|_| !self.versions(name).any(is_own))
    }

    /// The version of `name` that equals `requested`, else all versions that match it, newest
    /// first.
    pub fn matching(&self, name: &str, requested: &str) -> Vec<&Arc<BackendVersion>> {
        match self.versions(name).find(|i| i.version() == requested) {
            Some(exact) => vec![exact],
            None => self
                .versions(name)
                .filter(|i| version::matches_requested(i.version(), requested))
                .collect(),
        }
    }

    /// The version for models that request none: the configured one if it is installed, else the
    /// newest. Versions that fail to open come last.
    pub fn default_version(&self, name: &str) -> Option<&Arc<BackendVersion>> {
        let configured = self.configured_version(name);
        let mut candidates = configured.map_or(Vec::new(), |v| self.matching(name, v));
        if candidates.is_empty() {
            candidates = self.versions(name).collect();
        }
        let working = candidates.iter().find(|i| i.failure().is_none());
        working.or(candidates.first()).copied()
    }

    /// The newest version of `name` that matches `requested`; without one, the default version.
    pub fn matching_or_default(
        &self,
        name: &str,
        requested: Option<&str>,
    ) -> Option<&Arc<BackendVersion>> {
        let matching = requested.map_or(Vec::new(), |version| self.matching(name, version));
        matching.first().copied().or_else(|| self.default_version(name))
    }

    pub fn by_identity(&self, identity: &Identity) -> Option<&Arc<BackendVersion>> {
        self.usable.iter().find(|i| i.identity == *identity)
    }

    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.usable.iter().map(|i| i.name()).collect();
        names.dedup();
        names
    }

    /// The backend whose default version declares `platform`, other than `except`.
    pub fn backend_for(&self, platform: &str, except: Option<&str>) -> Option<&PluginBackend> {
        let names = self.names().into_iter().filter(|name| Some(*name) != except);
        names.filter_map(|name| self.default_version(name)).map(|i| &i.backend).find(|backend| {
            backend.facts.platforms.iter().any(|(declared, _)| declared == platform)
        })
    }

    /// Adds a version.
    ///
    /// # Errors
    /// Another file has the same name and version, or another backend declares one of the
    /// platforms.
    pub fn add(&mut self, new: Arc<BackendVersion>) -> Result<()> {
        let conflict = |what: String, other: &PluginBackend| {
            let (this, other) = (new.backend.file.path().display(), other.file.path().display());
            Err(Error::invalid(format!(
                "{what} is claimed by '{other}' and by '{this}'; remove one of them"
            )))
        };
        let (name, version) = (new.name(), new.version());
        if let Some(other) = self.versions(name).find(|i| i.version() == version) {
            return conflict(format!("version '{version}' of backend '{name}'"), &other.backend);
        }
        self.usable.push(Arc::clone(&new));
        self.sort();
        if !self.default_version(name).is_some_and(|i| Arc::ptr_eq(i, &new)) {
            return Ok(());
        }
        for (platform, _) in &new.backend.facts.platforms {
            if let Some(other) = self.backend_for(platform, Some(name)) {
                let refusal = conflict(format!("platform '{platform}'"), other);
                self.usable.retain(|i| !Arc::ptr_eq(i, &new));
                return refusal;
            }
        }
        Ok(())
    }

    pub fn sort(&mut self) {
        self.usable.sort_by(|a, b| {
            a.name().cmp(b.name()).then_with(|| version::compare_versions(b.version(), a.version()))
        });
    }

    /// Records a file as unusable; logs the reason unless `before` has it.
    pub fn reject(
        &mut self,
        before: &Inventory,
        candidate: &Candidate,
        recheck: bool,
        error: Error,
    ) {
        let unusable = UnusableFile {
            name: candidate.name.clone(),
            path: candidate.file.path().to_owned(),
            stamps: file_stamps(&candidate.file),
            recheck,
            error,
        };
        if !before.unusable.iter().any(|old| old.is_still(&unusable.path, &unusable.stamps)) {
            tracing::error!("{}", unusable.error);
        }
        self.unusable.push(unusable);
    }
}

impl UnusableFile {
    pub fn is_still(&self, path: &Path, stamps: &Stamps) -> bool {
        self.path == path && self.stamps == *stamps
    }
}

/// Stamps of the library, of the adapted file, and of the `plugin.toml` beside each.
pub type Stamps = [Option<FileStamp>; 4];

pub fn file_stamps(file: &PluginFile) -> Stamps {
    let adapted = file.adapted.as_ref().map(|adapted| &*adapted.file);
    let beside = |path: &Path| FileStamp::read(&manifest::manifest_path(path)).ok();
    [
        FileStamp::read(&file.library).ok(),
        beside(&file.library),
        adapted.and_then(|path| FileStamp::read(path).ok()),
        adapted.and_then(beside),
    ]
}
