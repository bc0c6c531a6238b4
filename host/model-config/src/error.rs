//! Why a model's configuration is refused.

use std::fmt;

/// Class of a configuration error; each has its code in the protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFault {
    /// The configuration is invalid.
    Invalid,
    /// Valid, but not supported by this server or its installed backends.
    Unsupported,
    /// The file could not be read.
    Unreadable,
}

/// Why a model's configuration, or a file it names, is refused. The message is written for the
/// operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub fault: ConfigFault,
    pub message: String,
    /// The part of the configuration that it is about, if that is known.
    pub part: ConfigPart,
}

/// A part of a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigPart {
    #[default]
    Unknown,
    /// The field of this path, or a field below it.
    Field(&'static str),
    /// Line and column in the file, from 1. The message begins with them.
    Position(usize, usize),
}

/// A setting that is accepted although it has no effect, or not the whole one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWarning {
    /// Path of the field; empty if the warning is about something else than a field.
    pub field: String,
    pub message: String,
}

impl ConfigError {
    fn new(fault: ConfigFault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), part: ConfigPart::Unknown }
    }

    /// The same error about `part`, unless it is known to be about another.
    pub fn about(mut self, part: ConfigPart) -> Self {
        if self.part == ConfigPart::Unknown {
            self.part = part;
        }
        self
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ConfigFault::Invalid, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ConfigFault::Unsupported, message)
    }

    pub fn unreadable(message: impl Into<String>) -> Self {
        Self::new(ConfigFault::Unreadable, message)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

/// Fails a check with `message`.
pub(super) fn refuse_config<T>(message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::invalid(message))
}
