//! The isolation setting: whether models run in the server's process (local) or in child processes (isolated).
//!
//! Precedence, highest first: the model's parameter, `--backend-config=NAME,isolation=…`, `plugin.toml`, the backend's
//! `MUST_ISOLATE` flag. The default is local.

use crate::error::{Error, Result};
use trtserver_proto::v2::ModelConfig;

/// Name of the model parameter and of the backend setting.
pub const KEY: &str = "isolation";

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    None,
    Process,
}

impl Isolation {
    /// Parses a value; the error completes a sentence that names the setting.
    pub fn parse(value: &str) -> Result<Self, String> {
        match value {
            "none" => Ok(Self::None),
            "process" => Ok(Self::Process),
            other => Err(format!("must be 'none' or 'process', got '{other}'")),
        }
    }
}

/// The setting for a model.
///
/// # Errors
/// Its parameter has an unknown value.
pub fn of_model(config: &ModelConfig, by_default: Isolation) -> Result<Isolation> {
    let Some(value) = config.parameters.get(KEY) else { return Ok(by_default) };
    Isolation::parse(&value.string_value)
        .map_err(|e| Error::invalid(format!("model '{}': parameter '{KEY}' {e}", config.name)))
}
