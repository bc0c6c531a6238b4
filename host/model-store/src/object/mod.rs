//! A model repository in an object store: models are copied into the cache, and into private
//! directories from there.

mod check;
mod client;
mod download;
mod message;
mod opener;
mod progress;
mod runtime;

pub use check::check_object_store as check_store;
pub use opener::ObjectStoreOpener;

use super::cache::{CachedTree, ModelCache};
use super::location::ObjectUrl;
use super::model_dir::{ModelDir, VersionFiles};
use super::{ModelStore, StoreSettings};
use crate::fingerprint::{FileStamp, ModelFingerprint};
use client::{StoreClient, connect_store};
use download::ObjectDownload;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use parking_lot::Mutex;
use progress::DownloadProgress;
use runtime::StoreRuntime;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_stream::StreamExt;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::disk::{is_entry, is_ignored};
use trtserver_base::error::{Code, Error, Result};

/// Requests of one server to one store at the same time.
const PARALLEL: usize = 8;

/// A model repository in an object store, read through the local cache.
pub struct ObjectRepository(Arc<StoreState>);

struct StoreState {
    location: String,
    client: StoreClient,
    cache: Arc<ModelCache>,
    runtime: Arc<StoreRuntime>,
    requests: Arc<Semaphore>,
}

/// A file of a model: its path below the model's directory.
#[derive(Clone)]
struct StoreEntry {
    path: String,
    object: ObjectMeta,
}

impl ObjectRepository {
    /// # Errors
    /// No credentials, or settings that cannot be used; names the URL.
    pub fn open(
        url: &ObjectUrl,
        settings: &StoreSettings,
        cache: &Arc<ModelCache>,
        runtime: &Arc<StoreRuntime>,
    ) -> Result<Self> {
        let client = connect_store(url, settings.timeout)
            .map_err(|e| Error::invalid(format!("model repository '{url}': {e}")))?;
        tracing::info!("model repository '{url}': credentials from {}", client.credentials);
        Ok(Self(Arc::new(StoreState {
            location: url.to_string(),
            client,
            cache: Arc::clone(cache),
            runtime: Arc::clone(runtime),
            requests: Arc::new(Semaphore::new(PARALLEL)),
        })))
    }
}

impl ModelStore for ObjectRepository {
    fn location(&self) -> &str {
        &self.0.location
    }

    fn models(&self) -> Result<Vec<String>> {
        let shared = &self.0;
        let list = async { shared.client.models().await };
        shared.runtime.run(&CancelFlag::default(), || (), list)
    }

    fn has(&self, model: &str) -> Result<bool> {
        let shared = &self.0;
        let has = async { shared.client.has(model).await };
        shared.runtime.run(&CancelFlag::default(), || (), has)
    }

    fn fingerprint(&self, model: &str) -> Result<ModelFingerprint> {
        let shared = &self.0;
        let list = async { shared.client.files(model).await };
        let files = shared.runtime.run(&CancelFlag::default(), || (), list)?;
        Ok(fingerprint_files(files.into_iter().map(|entry| (entry.path, entry.object))))
    }

    fn fingerprints(&self) -> Result<BTreeMap<String, ModelFingerprint>> {
        let shared = &self.0;
        let list = async { shared.client.all_files().await };
        let models = shared.runtime.run(&CancelFlag::default(), || (), list)?.into_iter();
        Ok(models.map(|(model, files)| (model, fingerprint_files(files.into_iter()))).collect())
    }

    fn materialise(&self, model: &str, cancel: &CancelFlag) -> Result<Arc<ModelDir>> {
        let shared = &self.0;
        let list = async { shared.client.files(model).await };
        let files = shared.runtime.run(cancel, || (), list)?;
        let failed = |e| shared.cache_error(model, &e);
        let tree = Arc::new(shared.cache.tree(model).map_err(failed)?);
        let (mut now, mut versions) = (Vec::new(), BTreeMap::<String, Vec<StoreEntry>>::new());
        for entry in files {
            match entry.path.split_once('/') {
                Some((dir, _)) if dir.starts_with(|c: char| c.is_ascii_digit()) => {
                    versions.entry(dir.to_owned()).or_default().push(entry);
                }
                _ => now.push(entry),
            }
        }
        for dir in versions.keys() {
            tree.add_dir(dir).map_err(failed)?;
        }
        shared.fill(model, &tree, now, cancel)?;
        let path = tree.path().to_owned();
        let copy = RemoteCopy {
            model: model.to_owned(),
            shared: Arc::clone(shared),
            tree,
            versions: Mutex::new(versions),
        };
        Ok(ModelDir::copied(path, Box::new(copy)))
    }
}

impl StoreState {
    /// Adds `files` to `tree`. Files that are not in the cache are downloaded.
    fn fill(
        self: &Arc<Self>,
        model: &str,
        tree: &Arc<CachedTree>,
        files: Vec<StoreEntry>,
        cancel: &CancelFlag,
    ) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let total = files.iter().map(|entry| entry.object.size).sum();
        let progress = Arc::new(DownloadProgress::new(model, &self.location, files.len(), total));
        let work = async {
            let mut downloads = tokio::task::JoinSet::new();
            for entry in files {
                let download = ObjectDownload {
                    client: self.client.clone(),
                    cache: Arc::clone(&self.cache),
                    requests: Arc::clone(&self.requests),
                    progress: Arc::clone(&progress),
                    object: entry.object,
                };
                let tree = Arc::clone(tree);
                downloads.spawn(async move { download.into_tree(&tree, &entry.path).await });
            }
            // The first failure ends the others: dropping the set aborts them.
            while let Some(done) = downloads.join_next().await {
                done.unwrap_or_else(|e| Err(format!("download panicked: {e}")))?;
            }
            Ok(())
        };
        let work = async {
            work.await.map_err(|e: String| Error::unavailable(format!("model '{model}': {e}")))
        };
        self.runtime.run(cancel, || progress.log(), work)?;
        progress.finish();
        Ok(())
    }

    fn cache_error(&self, model: &str, e: &std::io::Error) -> Error {
        Error::internal(format!("model '{model}': model cache: {e}"))
    }
}

/// The private directory of a model.
struct RemoteCopy {
    model: String,
    shared: Arc<StoreState>,
    tree: Arc<CachedTree>,
    /// Files of version directories that are empty so far.
    versions: Mutex<BTreeMap<String, Vec<StoreEntry>>>,
}

impl VersionFiles for RemoteCopy {
    fn fetch(&self, versions: &[&str], cancel: &CancelFlag) -> Result<()> {
        let missing = self.versions.lock();
        let files = versions.iter().filter_map(|name| missing.get(*name)).flatten().cloned();
        let files = files.collect();
        drop(missing);
        self.shared.fill(&self.model, &self.tree, files, cancel)?;
        self.versions.lock().retain(|name, _| !versions.contains(&name.as_str()));
        Ok(())
    }
}

/// Fingerprint of the objects of one model, by path.
fn fingerprint_files(files: impl Iterator<Item = (String, ObjectMeta)>) -> ModelFingerprint {
    ModelFingerprint::new(files.map(|(path, object)| {
        let ObjectMeta { last_modified, size, e_tag, .. } = object;
        let modified_ns = last_modified.timestamp_nanos_opt().unwrap_or_default();
        let tag = e_tag.unwrap_or_default();
        (PathBuf::from(path), FileStamp::from_object(modified_ns.into(), size, &tag))
    }))
}

/// Removes empty objects in place of directories, as web consoles create them.
fn remove_markers(files: &mut BTreeMap<String, ObjectMeta>) {
    let dirs: Vec<String> =
        files.keys().filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned())).collect();
    for dir in dirs {
        if files.get(&dir).is_some_and(|object| object.size == 0) {
            files.remove(&dir);
        }
    }
}

impl StoreClient {
    async fn models(&self) -> Result<Vec<String>> {
        let prefix = self.prefix("");
        let call = || format!("list {}/", self.url);
        let listed = self.store.list_with_delimiter(prefix.as_ref()).await;
        let listed = listed.map_err(|e| self.error(&call(), &e))?;
        let names = listed.common_prefixes.iter().filter_map(|prefix| prefix.filename());
        let is_model = |name: &&str| is_entry(name) && !is_ignored(name);
        let mut names: Vec<String> = names.filter(is_model).map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    async fn has(&self, model: &str) -> Result<bool> {
        let mut listed = self.store.list(self.prefix(model).as_ref());
        match listed.next().await {
            None => Ok(false),
            Some(Ok(_)) => Ok(true),
            Some(Err(e)) => Err(self.error(&format!("list {}/{model}/", self.url), &e)),
        }
    }

    /// The files of all models, by model and path.
    async fn all_files(&self) -> Result<BTreeMap<String, BTreeMap<String, ObjectMeta>>> {
        let prefix = self.prefix("");
        let below = self.url.key("");
        let mut listed = self.store.list(prefix.as_ref());
        let mut models: BTreeMap<String, BTreeMap<String, ObjectMeta>> = BTreeMap::new();
        while let Some(object) = listed.next().await {
            let object = object.map_err(|e| self.error(&format!("list {}/", self.url), &e))?;
            let path = object.location.as_ref().strip_prefix(&below);
            let Some((model, path)) = path.and_then(|path| path.split_once('/')) else { continue };
            if !is_entry(model) || is_ignored(model) {
                continue;
            }
            let files = models.entry(model.to_owned()).or_default();
            if !path.split('/').any(is_ignored) {
                files.insert(path.to_owned(), object);
            }
        }
        models.values_mut().for_each(remove_markers);
        Ok(models)
    }

    /// The files of a model, by path.
    async fn files(&self, model: &str) -> Result<Vec<StoreEntry>> {
        let prefix = self.prefix(model);
        let below = format!("{}/", self.url.key(model));
        let mut listed = self.store.list(prefix.as_ref());
        let mut files = BTreeMap::new();
        while let Some(object) = listed.next().await {
            let object =
                object.map_err(|e| self.error(&format!("list {}/{model}/", self.url), &e))?;
            let key = object.location.as_ref();
            let Some(path) = key.strip_prefix(&below) else { continue };
            if path.split('/').any(is_ignored) {
                continue;
            }
            if !path.split('/').all(is_entry) {
                return Err(Error::invalid(format!(
                    "model '{model}': '{key}' is not a usable path"
                )));
            }
            files.insert(path.to_owned(), object);
        }
        if files.is_empty() {
            return Err(Error::not_found(format!("'{}/{model}/' has no files", self.url)));
        }
        remove_markers(&mut files);
        Ok(files.into_iter().map(|(path, object)| StoreEntry { path, object }).collect())
    }

    /// The directory `path` of this repository; `None` for all of the bucket.
    fn prefix(&self, path: &str) -> Option<Path> {
        let key = self.url.key(path);
        Path::parse(key.trim_end_matches('/')).ok().filter(|path| !path.as_ref().is_empty())
    }

    fn error(&self, call: &str, e: &object_store::Error) -> Error {
        Error::new(Code::Unavailable, format!("{call}: {}", message::describe_store_error(e)))
    }
}
