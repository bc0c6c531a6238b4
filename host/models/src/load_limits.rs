//! Limits of what one model load may hold in memory, and how many instances it may open.

use crate::instance::limit::InstanceLimit;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::regular_file;
use trtserver_model_config::ConfigError;

/// Limits of a model load, from the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// `--max-instances-per-model`: instances of one version, over all instance groups.
    pub instances: usize,
    /// `--max-load-memory`: bytes of labels, initial states and warm-up data of one model.
    pub memory: u64,
    /// `--warmup-timeout-secs`: for the warm-up of one instance; `None` = no limit.
    pub warmup: Option<Duration>,
}

/// The defaults of the flags.
impl Default for LoadLimits {
    fn default() -> Self {
        Self { instances: 1024, memory: 256 << 20, warmup: Some(Duration::from_secs(1800)) }
    }
}

/// The limit of all instances of the server; `max`: `--max-instances`.
pub fn instance_limit(max: Option<usize>) -> Arc<InstanceLimit> {
    InstanceLimit::new(max)
}

/// What one load may still hold in memory. Bytes are taken from it before they are allocated.
pub struct LoadMemory {
    limit: u64,
    left: u64,
}

impl LoadMemory {
    pub fn new(limit: u64) -> Self {
        Self { limit, left: limit }
    }

    /// Takes `bytes` for `what`.
    ///
    /// # Errors
    /// The model would hold more than its limit; names `what`, the size and the flag.
    pub fn take(&mut self, bytes: u64, what: impl FnOnce() -> String) -> Result<(), ConfigError> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.exceeded(bytes, &what())),
        }
    }

    /// Reads a file and takes its size. `what` names its kind.
    ///
    /// # Errors
    /// The file cannot be read, is not a regular file, or is larger than the rest of the limit.
    pub fn read(&mut self, path: &Path, what: &str) -> Result<Vec<u8>, ReadError> {
        match regular_file::read_regular_file(path, self.left).map_err(ReadError::Io)? {
            Ok(bytes) => {
                self.left = self.left.saturating_sub(bytes.len() as u64);
                Ok(bytes)
            }
            Err(size) => {
                let what = format!("{what} '{}'", path.display());
                Err(ReadError::TooLarge(self.exceeded(size, &what)))
            }
        }
    }

    fn exceeded(&self, bytes: u64, what: &str) -> ConfigError {
        let Self { limit, left } = *self;
        ConfigError::invalid(format!(
            "{what} takes {bytes} bytes, more than the {left} left of --max-load-memory={limit}"
        ))
    }
}

/// Why a file was not read.
pub enum ReadError {
    Io(std::io::Error),
    TooLarge(ConfigError),
}

impl ReadError {
    /// As an error of the configuration; `io` makes the text of the system's error.
    pub fn into_config_error(self, io: impl FnOnce(std::io::Error) -> String) -> ConfigError {
        match self {
            Self::Io(e) => ConfigError::unreadable(io(e)),
            Self::TooLarge(e) => e,
        }
    }
}

#[cfg(test)]
#[path = "load_limits_tests.rs"]
mod tests;
