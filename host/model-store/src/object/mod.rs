//! A model repository in an object store: models are copied into the cache, and into private
//! directories from there.

mod check;
mod client;
mod download;
mod http_client;
mod listing;
mod message;
mod opener;
mod pages;
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
use listing::ModelObjects;
use object_store::ObjectMeta;
use parking_lot::Mutex;
use progress::DownloadProgress;
use runtime::StoreRuntime;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Error, Result};

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
        let list = async { shared.client.objects(model).await };
        let objects = shared.runtime.run(&CancelFlag::default(), || (), list)?;
        Ok(fingerprint_objects(objects))
    }

    fn fingerprints(&self) -> Result<BTreeMap<String, ModelFingerprint>> {
        let shared = &self.0;
        let list = async { shared.client.all_objects().await };
        let models = shared.runtime.run(&CancelFlag::default(), || (), list)?.into_iter();
        Ok(models.map(|(model, objects)| (model, fingerprint_objects(objects))).collect())
    }

    fn materialise(&self, model: &str, cancel: &CancelFlag) -> Result<Arc<ModelDir>> {
        let shared = &self.0;
        let list = async { shared.client.objects(model).await };
        let files = shared.runtime.run(cancel, || (), list)?.into_entries(model)?;
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

/// Fingerprint of the objects of one model, by path. Paths that no file can have count, so that
/// the model is loaded again once they are removed.
fn fingerprint_objects(objects: ModelObjects) -> ModelFingerprint {
    let files = objects.files.into_iter().map(|(path, object)| {
        let ObjectMeta { last_modified, size, e_tag, .. } = object;
        let modified_ns = last_modified.timestamp_nanos_opt().unwrap_or_default();
        let tag = e_tag.unwrap_or_default();
        (PathBuf::from(path), FileStamp::from_object(modified_ns.into(), size, &tag))
    });
    let unusable = objects.unusable.into_iter();
    let unusable = unusable.map(|path| (PathBuf::from(path), FileStamp::from_object(0, 0, "")));
    ModelFingerprint::new(files.chain(unusable))
}
