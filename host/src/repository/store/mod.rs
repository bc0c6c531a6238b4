//! Model repositories behind one trait: local directories, object stores.
//!
//! What comes after a store sees a plain local directory for each model.

mod local; // directories on local disk
mod model_dir; // the local directory of one model
mod repositories; // all repositories of a server
mod source; // the trait

pub use local::LocalStore;
pub use model_dir::{ModelDir, VersionFiles};
pub use repositories::{Listing, Repositories};
pub use source::{ModelSource, Store};
