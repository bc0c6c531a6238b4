//! The model repositories of a server: which models there are, and in which repositories each is.

use super::cache::{self, Cache};
use super::location::Location;
use super::object::{ObjectRepository, StoreRuntime};
use super::{LocalStore, ModelSource, Store, StoreSettings};
use crate::error::{Error, Result};
use crate::repository::disk::{is_entry, is_ignored};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The model repositories of a server, in the order given.
#[derive(Clone)]
pub struct Repositories(Vec<Arc<dyn Store>>);

/// Model directories of several repositories.
#[derive(Default)]
pub struct Listing {
    /// By name. A model in several repositories has several sources.
    pub models: BTreeMap<String, Vec<ModelSource>>,
    /// Errors of the repositories that cannot be listed.
    pub failures: Vec<Error>,
}

impl Repositories {
    /// Clients of object stores, their threads and their cache exist only if a location is in one.
    ///
    /// # Errors
    /// A local repository is not a directory, a URL is invalid, or there are no credentials for it.
    pub fn open(locations: &[PathBuf], settings: &StoreSettings) -> Result<Self> {
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        let mut shared = None;
        for location in locations {
            stores.push(match Location::parse(location).map_err(Error::invalid)? {
                Location::Local(path) => Arc::new(LocalStore::open(&path)?),
                Location::Object(url) => {
                    let (cache, runtime) = match &shared {
                        Some(shared) => shared,
                        None => shared.insert(open_shared(settings)?),
                    };
                    Arc::new(ObjectRepository::open(&url, settings, cache, runtime)?)
                }
            });
        }
        Ok(Self(stores))
    }

    /// The repositories, in the order given.
    pub fn stores(&self) -> &[Arc<dyn Store>] {
        &self.0
    }

    /// All model directories.
    pub fn list(&self) -> Listing {
        let mut listing = Listing::default();
        for store in &self.0 {
            match store.models() {
                Ok(names) => {
                    for name in names {
                        let source = ModelSource { store: Arc::clone(store), name: name.clone() };
                        listing.models.entry(name).or_default().push(source);
                    }
                }
                Err(e) => listing.failures.push(e),
            }
        }
        listing
    }

    /// The directories of the model `name`.
    ///
    /// # Errors
    /// A repository cannot be listed, so that it is unknown whether it has one.
    pub fn find(&self, name: &str) -> Result<Vec<ModelSource>> {
        let mut found = Vec::new();
        for store in self.0.iter().filter(|_| is_entry(name) && !is_ignored(name)) {
            if store.has(name)? {
                found.push(ModelSource { store: Arc::clone(store), name: name.to_owned() });
            }
        }
        Ok(found)
    }

    /// The one directory of the model `name`.
    ///
    /// # Errors
    /// As for `find`; there is none, or more than one.
    pub fn only(&self, name: &str) -> Result<ModelSource> {
        ModelSource::only(name, &self.find(name)?).cloned()
    }
}

/// What all object stores of a server share.
fn open_shared(settings: &StoreSettings) -> Result<(Arc<Cache>, Arc<StoreRuntime>)> {
    let dir = settings.cache_dir().map_err(Error::invalid)?;
    tracing::info!("model cache: '{}'", dir.display());
    let cache = Cache::open(&dir, settings.cache_size).map_err(Error::invalid)?;
    cache::register(&cache);
    let runtime = StoreRuntime::start()
        .map_err(|e| Error::internal(format!("cannot start the threads of object stores: {e}")))?;
    Ok((cache, Arc::new(runtime)))
}

#[cfg(test)]
#[path = "repositories_tests.rs"]
mod tests;
