//! Opens model repositories in object stores. Their threads and their cache exist only once one was
//! opened.

use super::super::cache::ModelCache;
use super::super::location::ObjectUrl;
use super::super::{CacheReport, ModelStore, StoreSettings};
use super::{ObjectRepository, StoreRuntime};
use std::path::PathBuf;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};

/// What the object stores of one server share.
pub struct ObjectStoreOpener<'a> {
    settings: &'a StoreSettings,
    shared: Option<(PathBuf, Arc<ModelCache>, Arc<StoreRuntime>)>,
}

impl<'a> ObjectStoreOpener<'a> {
    pub fn new(settings: &'a StoreSettings) -> Self {
        Self { settings, shared: None }
    }

    /// # Errors
    /// No credentials, settings that cannot be used, the cache cannot be opened, or Triton's
    /// variables name another one for this provider.
    pub fn open_repository(&mut self, url: &ObjectUrl) -> Result<Arc<dyn ModelStore>> {
        let dir = self.settings.cache_dir(url.provider).map_err(Error::invalid)?;
        let (opened, cache, runtime) = match &self.shared {
            Some(shared) => shared,
            None => self.shared.insert(open_shared(dir.clone(), self.settings)?),
        };
        if *opened != dir {
            return Err(Error::invalid(format!(
                "model repository '{url}': its models would be copied to '{}', those of another repository to '{}' \
                 (TRITON_…_MOUNT_DIRECTORY); a server has one cache: name it with --model-cache-dir",
                dir.display(),
                opened.display()
            )));
        }
        Ok(Arc::new(ObjectRepository::open(url, self.settings, cache, runtime)?))
    }

    /// The cache, if a repository was opened.
    pub fn cache(&self) -> Option<Arc<dyn CacheReport>> {
        let (_, cache, _) = self.shared.as_ref()?;
        let cache: Arc<ModelCache> = Arc::clone(cache);
        Some(cache)
    }
}

fn open_shared(
    dir: PathBuf,
    settings: &StoreSettings,
) -> Result<(PathBuf, Arc<ModelCache>, Arc<StoreRuntime>)> {
    tracing::info!("model cache: '{}'", dir.display());
    let cache = ModelCache::open(&dir, settings.cache_size).map_err(Error::invalid)?;
    let runtime = StoreRuntime::start()
        .map_err(|e| Error::internal(format!("cannot start the threads of object stores: {e}")))?;
    Ok((dir, cache, Arc::new(runtime)))
}
