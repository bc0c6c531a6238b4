//! The model repository as it serves: model directories loaded into a table of open versions.
//!
//! [`ModelTable`] maps name and version to an open version, read without a lock. [`lifecycle`]
//! draws the states of a version and the steps of a load; a replaced version closes after its last
//! user. [`instance`] runs one OS thread for each instance. [`poll`] watches files and decides,
//! purely, what is due once it has settled: once names, sizes and times of the files, their
//! fingerprint, have not changed for the settle time. [`ensemble`] opens ensembles after their steps.
//! [`memory`] reports memory by model, version and use.

#![forbid(unsafe_code)]

mod backend_use;
pub mod backends;
mod config_source;
pub mod ending_versions;
pub mod ensemble;
mod found_version;
mod in_flight;
pub mod instance;
pub mod labels;
mod late_requests;
pub mod lifecycle;
pub mod load_limits;
pub mod memory;
mod model;
mod open_instances;
mod open_version;
pub mod poll;
mod readiness;
mod repository_changes;
mod response_cache;
mod scheduling;
mod table;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of a server")]
pub mod testing;
mod warmup;

pub use config_source::{ConfigOrigin, ConfigSource};
pub use found_version::FoundVersion;
pub use in_flight::VersionInFlight;
pub use late_requests::LateRequests;
pub use lifecycle::{ModelVersion, VersionState};
pub use model::Model;
pub use open_instances::{OpenInstances, OpenResources};
pub use open_version::OpenVersion;
pub use readiness::UnreadyModel;
pub use repository_changes::{ChangeKind, RepositoryChange, RepositoryChanges};
pub use table::{InputMemory, LookupError, ModelTable};
/// The rate limiter of [`ModelTable::limiter`].
pub use trtserver_scheduler::limiter;
