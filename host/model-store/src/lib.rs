//! Model repositories behind one trait: local directories, object stores.
//!
//! What comes after a store sees a plain local directory for each model. The model cache
//! (`--model-cache-dir`) keeps the contents of objects on local disk as blobs, named by their
//! SHA-256; a tree is a model directory that is made of hard links to them.

#![forbid(unsafe_code)]

mod bare;
mod bare_layout;
#[cfg(feature = "object-stores")]
mod cache;
mod cache_usage;
#[cfg(feature = "object-stores")]
mod credentials;
pub mod fingerprint;
mod local;
mod local_roots;
mod location;
mod model_dir;
#[cfg(feature = "object-stores")]
mod object;
#[cfg(any(test, not(feature = "object-stores")))]
mod object_absent;
mod repositories;
mod settings;
mod source;

pub use bare::{BareSettings, is_model_name};
pub use cache_usage::{CacheReport, CacheUsage};
pub use local::LocalStore;
pub use location::StoreLocation;
pub use model_dir::{ModelDir, VersionFiles};
#[cfg(feature = "object-stores")]
use object::ObjectStoreOpener;
#[cfg(feature = "object-stores")]
pub use object::check_store;
#[cfg(not(feature = "object-stores"))]
use object_absent::ObjectStoreOpener;
#[cfg(not(feature = "object-stores"))]
pub use object_absent::check_store;
pub use repositories::{ModelListing, ModelRepositories};
pub use settings::StoreSettings;
pub use source::{ModelSource, ModelStore};
