//! The models of the repositories as they were last seen: reads what may have changed since.

use super::tree::FileTree;
use super::watch::{DirWatches, WatchHints, WatchOwner};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trtserver_base::disk::is_ignored;
use trtserver_model_config::model_id;
use trtserver_model_store::fingerprint::ModelFingerprint;
use trtserver_model_store::{ModelRepositories, ModelStore};

/// The files of a model in each repository that has it, or why they cannot be read.
pub type ModelFiles = Vec<(usize, std::result::Result<Arc<ModelFingerprint>, String>)>;

/// The models of all repositories, as the last look found them.
pub struct RepositoryFiles {
    repositories: Vec<PolledRepository>,
    /// Makes ids of models.
    all: ModelRepositories,
    /// By id.
    models: BTreeMap<String, PolledModel>,
    /// `None` where the system gives no more watches.
    watches: Option<DirWatches>,
}

/// Device and inode of a repository's directory; `None` if it is not on local disk.
type Identity = Option<(u64, u64)>;

struct PolledRepository {
    store: Arc<dyn ModelStore>,
    names: BTreeSet<String>,
    identity: Identity,
    /// Why it could not be listed, the last time.
    failure: Option<String>,
    listing: StoreListing,
    /// Its directory is watched, on a file system that reports all changes.
    watched: bool,
}

/// What the current look has read of a repository that is not on local disk.
#[derive(Default)]
enum StoreListing {
    /// Nothing: its models are looked at one by one.
    #[default]
    None,
    Models(BTreeMap<String, Arc<ModelFingerprint>>),
    Failed,
}

/// One model, looked at.
#[derive(Debug, PartialEq, Eq)]
pub enum FilesLook {
    Files(ModelFiles),
    Absent,
    /// The repository of the model could not be read.
    Failed,
}

#[derive(Default)]
struct PolledModel {
    /// Directories of the model, one for each repository that has it.
    dirs: Vec<ModelDir>,
}

struct ModelDir {
    /// Index of its repository.
    repository: usize,
    files: std::result::Result<WatchedFiles, String>,
    /// Events announce every change of its files.
    watched: bool,
}

enum WatchedFiles {
    Local(FileTree),
    /// Fingerprint of a model in a repository that is not on local disk.
    Listed(Arc<ModelFingerprint>),
}

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookExtent {
    /// What hints name.
    Hinted,
    /// Reads all models that are not watched, besides those with hints.
    Unwatched,
    /// Reads all models, watched or not.
    All,
}

impl RepositoryFiles {
    pub fn new(repositories: &ModelRepositories) -> Self {
        let watches = DirWatches::new().inspect_err(|e| {
            tracing::warn!("model repositories are polled without file events: {e}");
        });
        let repository = |store: &Arc<dyn ModelStore>| PolledRepository {
            store: Arc::clone(store),
            names: BTreeSet::new(),
            identity: None,
            failure: None,
            listing: StoreListing::None,
            watched: false,
        };
        let all = repositories.clone();
        let repositories = repositories.stores().iter().map(repository).collect();
        Self { repositories, all, models: BTreeMap::new(), watches: watches.ok() }
    }

    pub fn watches(&self) -> Option<&DirWatches> {
        self.watches.as_ref()
    }

    /// Whether the last look listed every repository.
    pub fn all_listed(&self) -> bool {
        self.repositories.iter().all(|repository| repository.failure.is_none())
    }

    /// Events since the last call.
    pub fn hints(&mut self) -> WatchHints {
        self.watches.as_mut().map(DirWatches::read).unwrap_or_default()
    }

    /// Looks at the models that `hints` name and at the models of `extent`. Returns the models and
    /// their files.
    pub fn look(&mut self, hints: &WatchHints, extent: LookExtent) -> Vec<(String, FilesLook)> {
        let all = extent == LookExtent::All || hints.all;
        let (mut gone, mut listed) = (BTreeSet::new(), false);
        for repository in &mut self.repositories {
            let unwatched = extent != LookExtent::Hinted && !repository.watched;
            if all || hints.repositories || unwatched {
                let before = repository.names.clone();
                repository.list(self.watches.as_mut());
                listed = true;
                let names = before.difference(&repository.names);
                gone.extend(names.map(|name| self.all.id(&*repository.store, name)));
            }
        }
        let watched =
            extent == LookExtent::Hinted || self.models.values().all(PolledModel::is_watched);
        if !all && !listed && hints.models.is_empty() && watched {
            return Vec::new();
        }
        let mut ids: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, repository) in self.repositories.iter().enumerate() {
            for name in &repository.names {
                ids.entry(self.all.id(&*repository.store, name)).or_default().push(index);
            }
        }
        let mut looked_at = Vec::new();
        for (id, repositories) in ids {
            gone.remove(&id);
            let model = match self.models.get_mut(&id) {
                Some(model) => model,
                None => self.models.entry(id.clone()).or_default(),
            };
            let moved = !model.dirs.iter().map(|dir| &dir.repository).eq(&repositories);
            let unwatched = extent != LookExtent::Hinted && !model.is_watched();
            if all || moved || unwatched || hints.models.contains(&id) {
                let repositories = repositories.iter().map(|i| (*i, &self.repositories[*i]));
                let read = model.read(&id, repositories, &mut self.watches);
                let look = if read { FilesLook::Files(model.files()) } else { FilesLook::Failed };
                looked_at.push((id, look));
            }
        }
        for name in gone {
            self.models.remove(&name);
            if let Some(watches) = &mut self.watches {
                watches.forget(&name);
            }
            looked_at.push((name, FilesLook::Absent));
        }
        self.repositories.iter_mut().for_each(|repository| repository.listing = StoreListing::None);
        looked_at
    }
}

impl PolledRepository {
    /// Reads the names of the models. On failure the names stay as they were.
    fn list(&mut self, watches: Option<&mut DirWatches>) {
        self.watched = false;
        if let (Some(watches), Some(root)) = (watches, self.store.local_root()) {
            let added = watches.add(root, WatchOwner::Repository).is_ok();
            self.watched = added && DirWatches::is_reliable(root);
        }
        let found = match self.store.local_root() {
            Some(root) => self.read(root).map_err(|e| e.to_string()),
            None => self.list_store(),
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

    /// Names and files of the models of a repository that is not on local disk.
    fn list_store(&mut self) -> std::result::Result<(BTreeSet<String>, Identity), String> {
        self.listing = StoreListing::Failed;
        let models = self.store.fingerprints().map_err(|e| e.message)?;
        let names = models.keys().cloned().collect();
        let models = models.into_iter().map(|(name, files)| (name, Arc::new(files)));
        self.listing = StoreListing::Models(models.collect());
        Ok((names, None))
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

impl PolledRepository {
    /// The files of a model that is not on local disk; `None` if they cannot be listed.
    fn find_fingerprint(&self, model: &str) -> Option<Arc<ModelFingerprint>> {
        match &self.listing {
            StoreListing::Models(models) => models.get(model).cloned(),
            StoreListing::Failed => None,
            StoreListing::None => self.store.fingerprint(model).ok().map(Arc::new),
        }
    }
}

impl PolledModel {
    /// False if a repository that is not on local disk could not be read: its files are kept as the
    /// last look found them.
    fn read<'a>(
        &mut self,
        id: &str,
        repositories: impl Iterator<Item = (usize, &'a PolledRepository)>,
        watches: &mut Option<DirWatches>,
    ) -> bool {
        let (_, name) = model_id::split_model_id(id);
        let mut before = std::mem::take(&mut self.dirs);
        let mut complete = true;
        for (index, repository) in repositories {
            let known = before.iter().position(|dir| dir.repository == index);
            let known = known.map(|at| before.swap_remove(at));
            let dir = match (known, repository.store.local_root()) {
                (Some(dir), _) if dir.is_current() => Some(dir),
                (_, Some(root)) => {
                    Some(ModelDir::read(index, id, &root.join(name), watches.as_mut()))
                }
                (known, None) => match repository.find_fingerprint(name) {
                    Some(files) => Some(ModelDir::listed(index, files)),
                    None => {
                        complete = false;
                        known
                    }
                },
            };
            self.dirs.extend(dir);
        }
        complete
    }

    fn is_watched(&self) -> bool {
        self.dirs.iter().all(|dir| dir.watched)
    }

    fn files(&self) -> ModelFiles {
        let files = |dir: &ModelDir| {
            let fingerprint = dir.files.as_ref().map(|files| match files {
                WatchedFiles::Local(tree) => Arc::clone(tree.fingerprint()),
                WatchedFiles::Listed(fingerprint) => Arc::clone(fingerprint),
            });
            (dir.repository, fingerprint.map_err(String::clone))
        };
        self.dirs.iter().map(files).collect()
    }
}

impl ModelDir {
    /// Whether a cheap look shows that nothing has changed.
    fn is_current(&self) -> bool {
        matches!(&self.files, Ok(WatchedFiles::Local(tree)) if tree.is_current())
    }

    fn listed(repository: usize, files: Arc<ModelFingerprint>) -> Self {
        Self { repository, files: Ok(WatchedFiles::Listed(files)), watched: false }
    }

    /// On local disk.
    fn read(repository: usize, id: &str, path: &Path, watches: Option<&mut DirWatches>) -> Self {
        let mut tree = FileTree::read(path).map_err(|e| e.to_string());
        let mut watched = false;
        if let (Some(watches), Ok(first)) = (watches, &tree) {
            let owner = WatchOwner::Model(id.to_owned());
            let added: Vec<_> =
                first.directories().map(|dir| watches.add(dir, owner.clone())).collect();
            let reliable = !first.has_links() && DirWatches::is_reliable(path);
            if added.contains(&Ok(true)) {
                // What changed before it was watched, or is a new directory.
                let before: Vec<PathBuf> = first.directories().map(Path::to_owned).collect();
                tree = FileTree::read(path).map_err(|e| e.to_string());
                let same =
                    |now: &FileTree| now.directories().eq(before.iter().map(PathBuf::as_path));
                watched = tree.as_ref().is_ok_and(same);
            } else {
                watched = true;
            }
            watched &= reliable && added.iter().all(|added| added.is_ok());
        }
        Self { repository, files: tree.map(WatchedFiles::Local), watched }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
