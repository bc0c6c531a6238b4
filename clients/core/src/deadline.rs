//! How long calls may take: as the program says, else as the environment says, else the defaults.

use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::time::Duration;

/// Deadline of a call for which neither the program nor the environment gives one.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(60);
/// The same of a call that loads or unloads a model: the server answers when the model is ready.
pub const DEFAULT_LOAD_DEADLINE: Duration = Duration::from_secs(600);
/// Environment variable with the deadline in seconds, 0 for none: for programs whose interface has
/// no deadlines.
pub const DEADLINE_VARIABLE: &str = "TRTSERVER_CLIENT_DEADLINE";

/// The deadline of the calls of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deadline {
    /// The deadline in the environment variable [`DEADLINE_VARIABLE`], otherwise
    /// [`DEFAULT_DEADLINE`] and [`DEFAULT_LOAD_DEADLINE`].
    #[default]
    Usual,
    /// Calls fail after this time.
    After(Duration),
    /// Calls wait for ever.
    Never,
}

impl From<Option<Duration>> for Deadline {
    fn from(limit: Option<Duration>) -> Self {
        limit.map_or(Self::Never, Self::After)
    }
}

/// A deadline for each kind of call; `None` means no deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeadlineLimits {
    pub call: Option<Duration>,
    /// Deadline of calls that load or unload a model.
    pub load: Option<Duration>,
}

impl DeadlineLimits {
    fn same(limit: Option<Duration>) -> Self {
        Self { call: limit, load: limit }
    }
}

impl Deadline {
    pub(crate) fn limits(self) -> Result<DeadlineLimits> {
        match self {
            Self::Usual => from_variable(std::env::var_os(DEADLINE_VARIABLE).as_deref()),
            Self::After(limit) => Ok(DeadlineLimits::same(Some(limit))),
            Self::Never => Ok(DeadlineLimits::same(None)),
        }
    }
}

fn from_variable(value: Option<&OsStr>) -> Result<DeadlineLimits> {
    let Some(value) = value else {
        return Ok(DeadlineLimits {
            call: Some(DEFAULT_DEADLINE),
            load: Some(DEFAULT_LOAD_DEADLINE),
        });
    };
    let seconds = value.to_str().and_then(|text| text.trim().parse::<f64>().ok());
    match seconds.map(Duration::try_from_secs_f64) {
        Some(Ok(Duration::ZERO)) => Ok(DeadlineLimits::same(None)),
        Some(Ok(limit)) => Ok(DeadlineLimits::same(Some(limit))),
        Some(Err(_)) | None => Err(Error::invalid(format!(
            "environment variable {DEADLINE_VARIABLE} is '{}', expected a number of seconds, or 0 for no deadline",
            value.to_string_lossy()
        ))),
    }
}

#[cfg(test)]
#[path = "deadline_tests.rs"]
mod tests;
