//! Lifecycle of models: load, replace, unload.
//!
//! States of one version. [`VersionState`] is what status and index report:
//!
//! ```text
//!            1                   2                  4                    5
//!   (none) ─────► LOADING ─────────────► READY ─────────► UNLOADING ─────────► UNAVAILABLE
//!                    │                   │  ▲                                   "unloaded"
//!                    │ 3               6 │  │ 7
//!                    ▼                   ▼  │
//!               UNAVAILABLE "why"   UNAVAILABLE "why"
//! ```
//!
//! | | event | moved by |
//! |---|---|---|
//! | 1 | a load prepared the model | `ModelVersion::new`; visible once `load` or `startup` publishes the entry |
//! | 2 | all instances are open and warmed up | `Model::set_ready` |
//! | 3 | opening failed, panicked, or the server stops | `Model::set_unavailable` |
//! | 4 | unload request, or the server drains | `Model::set_unloading` |
//! | 5 | the last user of the version is dropped | not stored: `ModelVersion::status` asks the usage tracker |
//! | 6 | the process of an isolated model is down; a step of an ensemble is not served | not stored: `ModelVersion::status` asks |
//! | 7 | the process restarted, the step is served again | not stored, like 6 |
//!
//! Only READY versions get requests. A version that is UNAVAILABLE because it failed becomes
//! "unloaded" by an unload request. An ensemble whose step's model was reloaded is reopened: it
//! goes to READY or UNAVAILABLE (2, 3).
//!
//! Steps of one load, all under the model's lock:
//!
//! ```text
//!   fingerprint ──► read config ──► complete ──► check ──► open versions ──► publish ──► retire the old entry
//!    (skip if        prepare, autocomplete,                 version_builder   one write    its last user
//!     unchanged)     ../model_config                                          in the table closes it
//! ```
//!
//! Versions that nothing of the change concerns stay open (`unchanged_versions`): their files, the
//! files that all versions share and the configuration are the same. Version policy, labels and
//! metric tags concern no open version.
//!
//! A model that serves nothing is published first and its versions are opened after that, each
//! becoming READY on its own (in the table a version goes LOADING, READY). A model that serves is
//! replaced: its new versions are opened beside the old ones, then one write publishes all of them
//! or, if one failed, none. The old versions stay READY until that write; requests that found the
//! old entry before it are still served by it.

mod adapter_only_settings;
mod autocomplete;
mod builder_files;
mod builder_instances;
mod client_loads;
mod config_file;
mod control;
mod ensembles;
mod inspect;
mod load;
mod model_locks;
mod overrides;
mod prepare;
mod prepared;
mod refusal;
mod selected_versions;
mod startup;
mod unchanged_versions;
mod unload;
mod usage;
mod version;
mod version_builder;

pub use crate::instance::load_progress::{LoadProgress, LoadTimes, LoadsInProgress};
pub use autocomplete::{decode_patch, merge_patch};
pub use control::{IndexEntry, LoadError, ModelControl, check_model_name};
pub use inspect::{CheckFinding, CheckedModel, FindingSeverity, RepositoryFindings};
pub use overrides::LoadOverrides;
pub use prepare::ModelLoader;
pub use startup::{AMBIGUOUS, StartupReport};
pub use usage::UsageGuard;
pub use version::{ModelVersion, VersionState};
