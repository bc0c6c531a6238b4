//! Model repositories behind one trait: local directories, object stores.
//!
//! What comes after a store sees a plain local directory for each model.

pub mod cache; // local cache of objects
mod credentials; // credentials for object stores
mod local; // directories on local disk
mod location; // paths and URLs
mod model_dir; // the local directory of one model
mod object; // object stores
mod repositories; // all repositories of a server
mod settings; // flags
mod source; // the trait

pub use local::LocalStore;
pub use location::Location;
pub use model_dir::{ModelDir, VersionFiles};
pub use object::{StoreRuntime, check_store};
pub use repositories::{Listing, Repositories};
pub use settings::StoreSettings;
pub use source::{ModelSource, Store};
