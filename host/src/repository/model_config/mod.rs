//! A model's configuration: read from its file, completed, normalised, checked.
//!
//! The steps run in that order; a backend may add tensors between `complete` and `normalise` (auto-complete). All but
//! `read` are pure: their input is a message, a directory listing, what backends say of its files, and facts about the
//! machine. Status responses and
//! backends get the result of `normalise`.

mod check; // refuses what cannot work
mod complete; // name, platform, backend and file from the directory
mod detect; // platform and file from the files of versions
mod error; // why a configuration is refused
mod fields; // what uses each field
mod instance_support; // kinds of instance that a backend opens and prefers
mod machine; // facts that configurations are checked against
mod normalise; // writes out defaults
mod platforms; // which backend serves which platform
mod read; // config.pbtxt from disk
#[cfg(test)]
mod testing; // set-up of the unit tests

pub(super) use check::stays_inside;
pub use check::{check, check_trtis_rules, histogram_buckets};
pub use complete::complete;
pub use detect::{Candidate, Probe, VersionListing};
pub use error::{ConfigError, Fault, Part, Warning};
pub use fields::without_effect;
pub use instance_support::{InstanceSupport, Preference};
pub use machine::{Gpu, Machine};
pub use normalise::{chooses_gpu, normalise};
pub use platforms::{ENSEMBLE, Platforms};
pub use read::{FILE_NAME, MAX_BYTES, read, read_with_places};
