//! A model's configuration: read from its file, completed, normalised, checked.
//!
//! The steps run in that order; a backend may add tensors between `complete` and `normalise` (auto-complete). All but
//! `read` are pure: their input is a message, a directory listing and facts about the machine. Status responses and
//! backends get the result of `normalise`.

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
pub use read::{FILE_NAME, MAX_BYTES, read};

use std::fmt;

/// Class of a configuration error; each has its code in the protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The configuration is invalid.
    Invalid,
    /// Valid, but not supported by this server or its installed backends.
    Unsupported,
    /// The file could not be read.
    Unreadable,
}

/// Why a model's configuration, or a file it names, is refused. The message is written for the operator.
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

/// Facts about this machine that configurations are checked against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Ids of the usable GPUs, ascending.
    pub gpus: Vec<i32>,
    /// Minimum compute capability of the GPUs in `gpus`, such as `6.0`.
    pub min_compute: String,
}

impl Machine {
    /// A machine with `count` GPUs, numbered from 0.
    pub fn with_gpus(count: usize) -> Self {
        let gpus = (0..).take(count).collect();
        Self { gpus, min_compute: "6.0".to_owned() }
    }

    fn has_gpu(&self, id: i32) -> bool {
        self.gpus.contains(&id)
    }
}
