//! The models of the repositories as they were last seen: reads what may have changed since.

use super::super::disk::is_ignored;
use super::super::lifecycle::Fingerprint;
use super::super::store::{Repositories, Store};
use super::tree::Tree;
use super::watch::{Hints, Owner, Watches};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a model in each repository that has it, or why they cannot be read.
pub type ModelFiles = Vec<(usize, std::result::Result<Arc<Fingerprint>, String>)>;

/// See the module text.
pub struct RepositoryFiles {
    repositories: Vec<Repository>,
    models: BTreeMap<String, Model>,
    /// `None` where the system gives no more watches.
    watches: Option<Watches>,
}

/// Device and inode of a repository's directory; `None` if it is not on local disk.
type Identity = Option<(u64, u64)>;

struct Repository {
    store: Arc<dyn Store>,
    names: BTreeSet<String>,
    identity: Identity,
    /// Why it could not be listed, the last time.
    failure: Option<String>,
    /// Its directory is watched, on a file system that reports all changes.
    watched: bool,
}

#[derive(Default)]
struct Model {
    /// In each repository that has it.
    dirs: Vec<ModelDir>,
}

struct ModelDir {
    /// Index of its repository.
    repository: usize,
    files: std::result::Result<Files, String>,
    /// Events announce every change of its files.
    watched: bool,
}

enum Files {
    Local(Tree),
    /// Of a repository that is not on local disk.
    Listed(Arc<Fingerprint>),
}

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What hints name.
    Hinted,
    /// Also everything that is not watched.
    Unwatched,
    /// Also everything that is.
    All,
}

impl RepositoryFiles {
    pub fn new(repositories: &Repositories) -> Self {
        let watches = Watches::new().inspect_err(|e| {
            tracing::warn!("model repositories are polled without file events: {e}");
        });
        let repository = |store: &Arc<dyn Store>| Repository {
            store: Arc::clone(store),
            names: BTreeSet::new(),
            identity: None,
            failure: None,
            watched: false,
        };
        let repositories = repositories.stores().iter().map(repository).collect();
        Self { repositories, models: BTreeMap::new(), watches: watches.ok() }
    }

    pub fn watches(&self) -> Option<&Watches> {
        self.watches.as_ref()
    }

    /// Events since the last call.
    pub fn hints(&mut self) -> Hints {
        self.watches.as_mut().map(Watches::read).unwrap_or_default()
    }

    /// Looks at the models that `hints` name and at those of `extent`. Returns what was looked at: `None` for models that are
    /// gone.
    pub fn look(&mut self, hints: &Hints, extent: Extent) -> Vec<(String, Option<ModelFiles>)> {
        let all = extent == Extent::All || hints.all;
        let (mut gone, mut listed) = (BTreeSet::new(), false);
        for repository in &mut self.repositories {
            let unwatched = extent != Extent::Hinted && !repository.watched;
            if all || hints.repositories || unwatched {
                let before = repository.names.clone();
                repository.list(self.watches.as_mut());
                listed = true;
                gone.extend(before.difference(&repository.names).cloned());
            }
        }
        let watched = extent == Extent::Hinted || self.models.values().all(Model::is_watched);
        if !all && !listed && hints.models.is_empty() && watched {
            return Vec::new();
        }
        let mut names: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, repository) in self.repositories.iter().enumerate() {
            for name in &repository.names {
                names.entry(name).or_default().push(index);
            }
        }
        let mut looked_at = Vec::new();
        for (name, repositories) in names {
            gone.remove(name);
            let model = match self.models.get_mut(name) {
                Some(model) => model,
                None => self.models.entry(name.to_owned()).or_default(),
            };
            let moved = !model.dirs.iter().map(|dir| &dir.repository).eq(&repositories);
            let unwatched = extent != Extent::Hinted && !model.is_watched();
            if all || moved || unwatched || hints.models.contains(name) {
                let before = std::mem::take(&mut model.dirs);
                let stores =
                    repositories.iter().map(|index| (*index, &self.repositories[*index].store));
                model.read(name, before, stores, &mut self.watches);
                looked_at.push((name.to_owned(), Some(model.files())));
            }
        }
        for name in gone {
            self.models.remove(&name);
            if let Some(watches) = &mut self.watches {
                watches.forget(&name);
            }
            looked_at.push((name, None));
        }
        looked_at
    }
}

impl Repository {
    /// Reads the names of the models. On failure the names stay as they were.
    fn list(&mut self, watches: Option<&mut Watches>) {
        self.watched = false;
        if let (Some(watches), Some(root)) = (watches, self.store.local_root()) {
            let added = watches.add(root, Owner::Repository).is_ok();
            self.watched = added && Watches::is_reliable(root);
        }
        let found =
            match self.store.local_root() {
                Some(root) => self.read(root).map_err(|e| e.to_string()),
                None => self.store.models().map_err(|e| e.message).map(|names| {
                    (names.into_iter().filter(|name| !is_ignored(name)).collect(), None)
                }),
            };
        let failure = match found {
            Ok((names, identity)) => {
                let replaced = self.identity.is_some() && self.identity != identity;
                if replaced && names.is_empty() && !self.names.is_empty() {
                    Some("another, empty directory has taken its place".to_owned())
                } else {
                    (self.names, self.identity) = (names, identity);
                    None
                }
            }
            Err(reason) => Some(reason),
        };
        self.watched &= failure.is_none();
        let location = self.store.location();
        if let Some(reason) =
            failure.as_ref().filter(|reason| self.failure.as_ref() != Some(reason))
        {
            tracing::error!(
                "Failed to poll model repository: '{location}': {reason}; its models stay as they are"
            );
        } else if failure.is_none() && self.failure.is_some() {
            tracing::info!("model repository '{location}' can be polled again");
        }
        self.failure = failure;
    }

    /// Names of the model directories, and which directory `root` is.
    fn read(&self, root: &Path) -> Result<(BTreeSet<String>, Identity)> {
        let metadata = fs::metadata(root)?;
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if is_ignored(&name) {
                continue;
            }
            let kind = entry.file_type()?;
            let is_dir = match kind.is_symlink() {
                false => kind.is_dir(),
                // What cannot be looked up now stays as it was.
                true => match fs::metadata(entry.path()) {
                    Ok(target) => target.is_dir(),
                    Err(e) => e.kind() != ErrorKind::NotFound && self.names.contains(&name),
                },
            };
            if is_dir {
                names.insert(name);
            }
        }
        Ok((names, Some((metadata.dev(), metadata.ino()))))
    }
}

impl Model {
    fn read<'a>(
        &mut self,
        name: &str,
        mut before: Vec<ModelDir>,
        stores: impl Iterator<Item = (usize, &'a Arc<dyn Store>)>,
        watches: &mut Option<Watches>,
    ) {
        for (repository, store) in stores {
            let known = before.iter().position(|dir| dir.repository == repository);
            let dir = match known.map(|at| before.swap_remove(at)) {
                Some(dir) if dir.is_current() => dir,
                _ => ModelDir::read(name, repository, &**store, watches.as_mut()),
            };
            self.dirs.push(dir);
        }
    }

    fn is_watched(&self) -> bool {
        self.dirs.iter().all(|dir| dir.watched)
    }

    fn files(&self) -> ModelFiles {
        let files = |dir: &ModelDir| {
            let fingerprint = dir.files.as_ref().map(|files| match files {
                Files::Local(tree) => Arc::clone(tree.fingerprint()),
                Files::Listed(fingerprint) => Arc::clone(fingerprint),
            });
            (dir.repository, fingerprint.map_err(String::clone))
        };
        self.dirs.iter().map(files).collect()
    }
}

impl ModelDir {
    /// Whether a cheap look shows that nothing has changed.
    fn is_current(&self) -> bool {
        matches!(&self.files, Ok(Files::Local(tree)) if tree.is_current())
    }

    fn read(
        name: &str,
        repository: usize,
        store: &dyn Store,
        watches: Option<&mut Watches>,
    ) -> Self {
        let Some(root) = store.local_root() else {
            let listed = store.fingerprint(name).map_err(|e| e.message);
            let files = listed.map(|fingerprint| Files::Listed(Arc::new(fingerprint)));
            return Self { repository, files, watched: false };
        };
        let path = root.join(name);
        let mut tree = Tree::read(&path).map_err(|e| e.to_string());
        let mut watched = false;
        if let (Some(watches), Ok(first)) = (watches, &tree) {
            let owner = Owner::Model(name.to_owned());
            let added: Vec<_> =
                first.directories().map(|dir| watches.add(dir, owner.clone())).collect();
            let reliable = !first.has_links() && Watches::is_reliable(&path);
            if added.contains(&Ok(true)) {
                // What changed before it was watched, or is a new directory.
                let before: Vec<PathBuf> = first.directories().map(Path::to_owned).collect();
                tree = Tree::read(&path).map_err(|e| e.to_string());
                let same = |now: &Tree| now.directories().eq(before.iter().map(PathBuf::as_path));
                watched = tree.as_ref().is_ok_and(same);
            } else {
                watched = true;
            }
            watched &= reliable && added.iter().all(|added| added.is_ok());
        }
        Self { repository, files: tree.map(Files::Local), watched }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
