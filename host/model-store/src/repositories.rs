//! The model repositories of a server: which models there are, and in which repositories each is.

use super::local_roots::LocalRoots;
use super::location::StoreLocation;
use super::{CacheReport, ModelSource, ModelStore, ObjectStoreOpener, StoreSettings};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use trtserver_base::disk::{is_entry, is_ignored};
use trtserver_base::error::{Error, Result};
use trtserver_model_config::model_id;

/// The model repositories of a server, in the order given.
#[derive(Clone)]
pub struct ModelRepositories {
    stores: Vec<Arc<dyn ModelStore>>,
    /// Models of equal names in different repositories are different models.
    namespaces: bool,
    cache: Option<Arc<dyn CacheReport>>,
}

/// Model directories of several repositories.
#[derive(Default)]
pub struct ModelListing {
    /// By id. Without namespaces a model in several repositories has several sources.
    pub models: BTreeMap<String, Vec<ModelSource>>,
    /// Errors of the repositories that cannot be listed.
    pub failures: Vec<Error>,
}

impl ModelRepositories {
    /// Clients of object stores, their threads and their cache exist only if a location is in one.
    ///
    /// # Errors
    /// A local repository is not a directory, a URL is invalid, or there are no credentials for it; or
    /// `--model-name` is given and not exactly one repository is bare.
    pub fn open(locations: &[PathBuf], settings: &StoreSettings, namespaces: bool) -> Result<Self> {
        let mut stores: Vec<Arc<dyn ModelStore>> = Vec::new();
        let mut object_stores = ObjectStoreOpener::new(settings);
        let mut roots = LocalRoots::default();
        for location in locations {
            match StoreLocation::parse(location).map_err(Error::invalid)? {
                StoreLocation::Local(path) => roots.add(&path, &settings.bare)?,
                StoreLocation::Object(_) => {}
            }
        }
        roots.expect_named(&settings.bare)?;
        for location in locations {
            stores.push(match StoreLocation::parse(location).map_err(Error::invalid)? {
                StoreLocation::Local(path) => roots.open(&path, &settings.bare)?,
                StoreLocation::Object(url) => object_stores.open_repository(&url)?,
            });
        }
        Ok(Self { stores, namespaces, cache: object_stores.cache() })
    }

    /// The cache of the object stores; `None` if all repositories are local.
    pub fn cache(&self) -> Option<Arc<dyn CacheReport>> {
        self.cache.clone()
    }

    /// The repositories, in the order given.
    pub fn stores(&self) -> &[Arc<dyn ModelStore>] {
        &self.stores
    }

    /// The id of model `name` in `store`.
    pub fn id(&self, store: &dyn ModelStore, name: &str) -> String {
        match self.namespaces {
            true => model_id::join_model_id(store.location(), name),
            false => name.to_owned(),
        }
    }

    /// The ids of the models called `name`.
    ///
    /// # Errors
    /// The errors of `find`.
    pub fn named(&self, name: &str) -> Result<Vec<String>> {
        match self.namespaces {
            true => Ok(self.find(name)?.iter().map(|found| self.id(&*found.store, name)).collect()),
            false => Ok(vec![name.to_owned()]),
        }
    }

    /// The id of the model that a step of the ensemble `ensemble` names.
    pub fn resolve_step(&self, ensemble: &str, step: &str) -> String {
        let exists = |id: &str| self.only(id).is_ok();
        model_id::resolve_step_id(ensemble, step, exists, |name| {
            self.named(name).unwrap_or_default()
        })
    }

    /// All model directories.
    pub fn list(&self) -> ModelListing {
        let mut listing = ModelListing::default();
        for store in &self.stores {
            match store.models() {
                Ok(names) => {
                    for name in names {
                        let id = self.id(&**store, &name);
                        let source = ModelSource { store: Arc::clone(store), name };
                        listing.models.entry(id).or_default().push(source);
                    }
                }
                Err(e) => listing.failures.push(e),
            }
        }
        listing
    }

    /// The directories of the model `id`; of all models of that name if it is a name.
    ///
    /// # Errors
    /// A repository cannot be listed, so that it is unknown whether it has one.
    pub fn find(&self, id: &str) -> Result<Vec<ModelSource>> {
        let mut found = Vec::new();
        let (namespace, name) =
            if self.namespaces { model_id::split_model_id(id) } else { ("", id) };
        let may_have = |store: &&Arc<dyn ModelStore>| {
            (namespace.is_empty() || namespace == store.location())
                && is_entry(name)
                && !is_ignored(name)
        };
        for store in self.stores.iter().filter(may_have) {
            if store.has(name)? {
                found.push(ModelSource { store: Arc::clone(store), name: name.to_owned() });
            }
        }
        Ok(found)
    }

    /// The one directory of the model `id`.
    ///
    /// # Errors
    /// The errors of `find`; or no repository has the model, or more than one.
    pub fn only(&self, id: &str) -> Result<ModelSource> {
        ModelSource::only(id, &self.find(id)?).cloned()
    }
}

#[cfg(test)]
#[path = "repositories_tests.rs"]
mod tests;
