//! Model repositories behind one trait: local directories, object stores.
//!
//! What comes after a store sees a plain local directory for each model.

#[cfg(feature = "object-stores")]
mod cache; // local cache of objects
mod cache_usage; // for the metrics page
#[cfg(feature = "object-stores")]
mod credentials; // credentials for object stores
mod local; // directories on local disk
mod location; // paths and URLs
mod model_dir; // the local directory of one model
#[cfg(feature = "object-stores")]
mod object; // object stores
#[cfg(any(test, not(feature = "object-stores")))]
mod object_absent; // the error that this server has none
mod repositories; // all repositories of a server
mod settings; // flags
mod source; // the trait

pub use cache_usage::CacheUsage;
pub use local::LocalStore;
pub use location::Location;
pub use model_dir::{ModelDir, VersionFiles};
#[cfg(feature = "object-stores")]
use object::ObjectStoreOpener;
#[cfg(feature = "object-stores")]
pub use object::{cache_usage, check_store};
#[cfg(not(feature = "object-stores"))]
use object_absent::ObjectStoreOpener;
#[cfg(not(feature = "object-stores"))]
pub use object_absent::{cache_usage, check_store};
pub use repositories::{Listing, Repositories};
pub use settings::StoreSettings;
pub use source::{ModelSource, Store};
