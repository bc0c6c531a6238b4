//! A model's configuration: read from its file, completed, normalised, checked.
//!
//! The steps run in that order, and a backend may fill in tensors between `complete` and
//! `normalise`. All but `read` are pure: they see a message, a directory listing and a few facts
//! about the machine. What comes out of `normalise` is what status shows and what backends are
//! handed.

mod check; // refuses what cannot work
mod complete; // name, platform, backend and file from the directory
mod normalise; // writes out defaults
mod platforms; // which backend serves which platform
mod read; // config.pbtxt from disk
#[cfg(test)]
mod testing; // set-up of the unit tests

pub use check::check;
pub(super) use check::stays_inside;
pub use complete::complete;
pub use normalise::{Preference, normalise};
pub use platforms::{ENSEMBLE, Platforms};
pub use read::{FILE_NAME, read};

use std::fmt;

/// What kind of failure a configuration met; the protocols have a code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The configuration says something that cannot be.
    Invalid,
    /// It says something sensible that this server does not do (yet), or has no backend for.
    Unsupported,
    /// The file could not be read.
    Unreadable,
}

/// Why a model's configuration, or a file it names, is refused. The message is for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub fault: Fault,
    pub message: String,
}

impl ConfigError {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { fault: Fault::Invalid, message: message.into() }
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self { fault: Fault::Unsupported, message: message.into() }
    }

    pub fn unreadable(message: impl Into<String>) -> Self {
        Self { fault: Fault::Unreadable, message: message.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

/// The facts about this machine that configurations are held against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Ids of the GPUs that may be used, ascending.
    pub gpus: Vec<i32>,
    /// Compute capability below which a GPU is left out of `gpus`, such as `6.0`.
    pub min_compute: String,
}

impl Machine {
    /// A machine whose GPUs are numbered from 0 without gaps; none for `count` 0.
    pub fn with_gpus(count: usize) -> Self {
        let gpus = (0..).take(count).collect();
        Self { gpus, min_compute: "6.0".to_owned() }
    }

    fn has_gpu(&self, id: i32) -> bool {
        self.gpus.contains(&id)
    }
}
