//! In place of `object` in a server that is built without the feature `object-stores`.

use super::location::ObjectUrl;
use super::{CacheReport, ModelStore, StoreSettings};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::error::{Error, Result};

/// Opens no repository: each URL is an error.
pub struct ObjectStoreOpener<'a>(PhantomData<&'a StoreSettings>);

impl<'a> ObjectStoreOpener<'a> {
    pub fn new(_: &'a StoreSettings) -> Self {
        Self(PhantomData)
    }

    /// # Errors
    /// Always.
    pub fn open_repository(&mut self, url: &ObjectUrl) -> Result<Arc<dyn ModelStore>> {
        Err(Error::invalid(absent(url)))
    }

    /// Only repositories in object stores have a cache.
    pub fn cache(&self) -> Option<Arc<dyn CacheReport>> {
        None
    }
}

/// # Errors
/// Always.
pub fn check_store(url: &ObjectUrl, _: Duration, _: &mut dyn Write) -> io::Result<bool> {
    Err(io::Error::other(absent(url)))
}

fn absent(url: &ObjectUrl) -> String {
    format!(
        "model repository '{url}' is in an object store, and this server was built without them, as that of `cargo xtask demo` \
         is; use a server of `cargo xtask build`, or a directory"
    )
}

#[cfg(test)]
#[path = "object_absent_tests.rs"]
mod tests;
