//! The versions of all backends at one moment, and the order among them.

use super::directories::{self, Candidate};
use super::version;
use crate::error::{Error, Result};
use crate::plugin::backend::Backend;
use crate::plugin::library::file::Stamp;
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// What the last look has found.
#[derive(Default)]
pub struct Known {
    /// By name, the newest version of each first.
    pub usable: Vec<Arc<Installed>>,
    pub unusable: Vec<Unusable>,
    /// By backend name: the version for models that ask for none.
    pub wanted: Arc<BTreeMap<String, String>>,
}

/// One version of a backend.
pub struct Installed {
    pub stamp: Stamp,
    /// Its facts; never opened itself, so that the plugin closes with its last model.
    pub backend: Backend,
    pub in_use: Mutex<Weak<Backend>>,
}

/// A file that looks like a backend and is none.
#[derive(Clone)]
pub struct Unusable {
    /// As the file is called.
    pub name: String,
    pub path: PathBuf,
    /// Of the file and of its `plugin.toml`: it is tried again when one of them has changed.
    stamps: [Option<Stamp>; 2],
    /// There is nothing wrong with it but another file, which may go.
    pub clashes: bool,
    /// Names the file.
    pub error: Error,
}

impl Installed {
    pub fn name(&self) -> &str {
        &self.backend.facts.name
    }

    pub fn version(&self) -> &str {
        &self.backend.facts.version
    }

    /// What its models share.
    pub fn shared(&self) -> Arc<Backend> {
        let mut in_use = self.in_use.lock();
        in_use.upgrade().unwrap_or_else(|| {
            let backend = Arc::new(self.backend.unopened());
            *in_use = Arc::downgrade(&backend);
            backend
        })
    }
}

impl Known {
    /// The newest first.
    pub fn versions(&self, name: &str) -> impl Iterator<Item = &Arc<Installed>> {
        self.usable.iter().filter(move |i| i.name() == name)
    }

    /// The newest version of `name` that is, or begins with, `wanted`.
    pub fn version(&self, name: &str, wanted: &str) -> Option<&Arc<Installed>> {
        let exact = self.versions(name).find(|i| i.version() == wanted);
        exact.or_else(|| self.versions(name).find(|i| version::fits(i.version(), wanted)))
    }

    /// The version for models that ask for none, or which it would be without the operator's word.
    pub fn usual(&self, name: &str) -> Option<&Arc<Installed>> {
        let wanted = self.wanted.get(name).and_then(|wanted| self.version(name, wanted));
        wanted.or_else(|| self.versions(name).next())
    }

    pub fn known(&self, stamp: &Stamp) -> Option<&Arc<Installed>> {
        self.usable.iter().find(|i| i.stamp == *stamp)
    }

    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.usable.iter().map(|i| i.name()).collect();
        names.dedup();
        names
    }

    pub fn claimant(&self, platform: &str, but: Option<&str>) -> Option<&Backend> {
        let names = self.names().into_iter().filter(|name| Some(*name) != but);
        names
            .filter_map(|name| self.usual(name))
            .map(|i| &i.backend)
            .find(|backend| backend.facts.platforms.iter().any(|(claimed, _)| claimed == platform))
    }

    /// Takes a version in, unless another file claims to be the same, or another backend the same platform.
    pub fn admit(&mut self, new: Arc<Installed>) -> Result<()> {
        let clash = |what: String, other: &Backend| {
            let (this, other) = (new.backend.path.display(), other.path.display());
            Err(Error::invalid(format!(
                "{what} is claimed by '{other}' and by '{this}'; remove one of them"
            )))
        };
        let (name, version) = (new.name(), new.version());
        if let Some(other) = self.versions(name).find(|i| i.version() == version) {
            return clash(format!("version '{version}' of backend '{name}'"), &other.backend);
        }
        self.usable.push(Arc::clone(&new));
        self.sort();
        if !self.usual(name).is_some_and(|i| Arc::ptr_eq(i, &new)) {
            return Ok(());
        }
        for (platform, _) in &new.backend.facts.platforms {
            if let Some(other) = self.claimant(platform, Some(name)) {
                let refusal = clash(format!("platform '{platform}'"), other);
                self.usable.retain(|i| !Arc::ptr_eq(i, &new));
                return refusal;
            }
        }
        Ok(())
    }

    pub fn sort(&mut self) {
        self.usable.sort_by(|a, b| {
            a.name().cmp(b.name()).then_with(|| version::compare(b.version(), a.version()))
        });
    }

    /// Leaves a file out, and says so if that is news.
    pub fn leave_out(
        &mut self,
        before: &Known,
        candidate: &Candidate,
        clashes: bool,
        error: Error,
    ) {
        let unusable = Unusable {
            name: candidate.name.clone(),
            path: candidate.path.clone(),
            stamps: stamps(&candidate.path),
            clashes,
            error,
        };
        if !before.unusable.iter().any(|old| old.is_still(&unusable.path, &unusable.stamps)) {
            tracing::error!("{}", unusable.error);
        }
        self.unusable.push(unusable);
    }
}

impl Unusable {
    pub fn is_still(&self, path: &Path, stamps: &[Option<Stamp>; 2]) -> bool {
        self.path == path && self.stamps == *stamps
    }
}

pub fn stamps(library: &Path) -> [Option<Stamp>; 2] {
    let manifest = directories::manifest_of(library);
    [library, &manifest].map(|path| Stamp::of(path).ok())
}
