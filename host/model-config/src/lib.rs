//! A model's configuration: read from its file, completed, normalised, checked.
//!
//! The steps run in that order; a backend may add tensors between `complete` and `normalise`
//! (auto-complete). All but `read` are pure: their input is a message, a directory listing, what
//! backends say of its files, and facts about the machine. Status responses and backends get the
//! result of `normalise`.

#![forbid(unsafe_code)]

mod check;
mod comment_bytes;
mod complete;
mod detect;
mod error;
mod fields;
pub mod installed_platforms;
mod instance_support;
mod machine;
pub mod model_id;
mod normalise;
mod platforms;
mod read;
#[cfg(test)]
mod testing;
pub mod version_dirs;
pub mod version_policy;

pub use check::{check_config, check_trtis_rules, histogram_buckets, named_states};
pub use complete::complete_config;
pub use detect::{FileProbe, PlatformCandidate, VersionListing};
pub use error::{ConfigError, ConfigFault, ConfigPart, ConfigWarning};
pub use fields::without_effect;
pub use installed_platforms::WithOwnBackend;
pub use instance_support::{InstancePreference, InstanceSupport};
pub use machine::{MachineFacts, MachineGpu};
pub use normalise::{chooses_gpu, normalise_config};
pub use platforms::{
    ENSEMBLE, PlatformDirectory, WHOLE_DIRECTORY, WHOLE_DIRECTORY_FILES, implied_backend,
};
pub use read::{FILE_NAME, MAX_BYTES, read_model_config, read_with_places, read_with_text};
