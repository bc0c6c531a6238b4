//! The model repository: model directories on disk, loaded into a table of open versions.
//!
//! `lifecycle` draws the states of a version and the steps of a load. The other modules each do one of those steps or
//! hold its result.

mod backend_use; // the use of a backend by a model version
pub mod backends; // which loaded model versions use which backend
pub(crate) mod disk; // entries of a directory
pub mod ending; // replaced versions whose sequences have not ended
pub mod ensemble; // ensembles and the models of their steps
mod in_flight; // requests in flight by version
pub mod labels; // class label files
pub mod lifecycle; // load, replace, unload
pub mod load_limits; // memory and instances of one load
pub mod memory; // memory by model, version and use
mod model; // a model: configuration and versions
pub mod model_config; // a model's configuration, from file to effective
mod model_id; // name, or namespace and name
mod open_instances; // the instances of an open version
mod open_version; // an open version: queue, instances, signature
mod platforms; // platforms of the installed backends
pub mod poll; // changes of files, while the server runs
mod readiness; // models that are not ready, why and since when
mod scheduling; // queue policy, and the inputs the host adds for sequences
pub mod store; // where model directories come from
mod table; // name and version to open version
#[cfg(any(test, feature = "fuzzing"))]
pub mod testing; // versions that are served by a queue
pub(crate) mod version_dirs; // which directories of a model are versions
pub mod version_policy; // which version directories are served
mod warmup; // `model_warmup` samples

pub use in_flight::VersionInFlight;
pub use lifecycle::{Version, VersionState};
pub use model::Model;
pub use open_instances::{OpenInstances, Opened};
pub use open_version::OpenVersion;
pub use readiness::Unready;
pub use table::{InputMemory, LookupError, ModelTable};
