//! The model repositories of a server: which models there are, and in which repositories each is.

use super::{LocalStore, ModelSource, Store};
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
    /// # Errors
    /// A local repository is not a directory.
    pub fn open(locations: &[PathBuf]) -> Result<Self> {
        let open = |path: &PathBuf| Ok(Arc::new(LocalStore::open(path)?) as Arc<dyn Store>);
        Ok(Self(locations.iter().map(open).collect::<Result<_>>()?))
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
}

#[cfg(test)]
#[path = "repositories_tests.rs"]
mod tests;
