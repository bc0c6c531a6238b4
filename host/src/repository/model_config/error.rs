//! Why a model's configuration is refused.

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

/// Fails a check with `message`.
pub(super) fn refuse<T>(message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::invalid(message))
}
