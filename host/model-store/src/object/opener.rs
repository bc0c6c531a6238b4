//! Opens model repositories in object stores. Their threads and their cache exist only once one was
//! opened.

use super::super::cache::ModelCache;
use super::super::location::ObjectUrl;
use super::super::{CacheReport, ModelStore, StoreSettings};
use super::{ObjectRepository, StoreRuntime};
use std::sync::Arc;
use trtserver_base::error::{Error, Result};

/// What the object stores of one server share.
pub struct ObjectStoreOpener<'a> {
    settings: &'a StoreSettings,
    shared: Option<(Arc<ModelCache>, Arc<StoreRuntime>)>,
}

impl<'a> ObjectStoreOpener<'a> {
    pub fn new(settings: &'a StoreSettings) -> Self {
        Self { settings, shared: None }
    }

    /// # Errors
    /// No credentials, settings that cannot be used, or the cache cannot be opened.
    pub fn open_repository(&mut self, url: &ObjectUrl) -> Result<Arc<dyn ModelStore>> {
        let (cache, runtime) = match &self.shared {
            Some(shared) => shared,
            None => self.shared.insert(open_shared(self.settings)?),
        };
        Ok(Arc::new(ObjectRepository::open(url, self.settings, cache, runtime)?))
    }

    /// The cache, if a repository was opened.
    pub fn cache(&self) -> Option<Arc<dyn CacheReport>> {
        let (cache, _) = self.shared.as_ref()?;
        let cache: Arc<ModelCache> = Arc::clone(cache);
        Some(cache)
    }
}

fn open_shared(settings: &StoreSettings) -> Result<(Arc<ModelCache>, Arc<StoreRuntime>)> {
    let dir = settings.cache_dir().map_err(Error::invalid)?;
    tracing::info!("model cache: '{}'", dir.display());
    let cache = ModelCache::open(&dir, settings.cache_size).map_err(Error::invalid)?;
    let runtime = StoreRuntime::start()
        .map_err(|e| Error::internal(format!("cannot start the threads of object stores: {e}")))?;
    Ok((cache, Arc::new(runtime)))
}
