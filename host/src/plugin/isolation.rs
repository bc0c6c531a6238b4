//! Whether a backend's models run in the server's process or each in one of its own, and who decides.
//!
//! The model's parameter counts first, then `--backend-config=NAME,isolation=…`, then `plugin.toml`, then what the
//! backend asks for (`MUST_ISOLATE`); else models run in the server's process.

use crate::error::{Error, Result};
use trtserver_proto::v2::ModelConfig;

/// The model parameter and the backend setting.
pub const KEY: &str = "isolation";

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    None,
    Process,
}

impl Isolation {
    /// From the value of a setting; the error completes a sentence that names it.
    pub fn parse(value: &str) -> Result<Self, String> {
        match value {
            "none" => Ok(Self::None),
            "process" => Ok(Self::Process),
            other => Err(format!("must be 'none' or 'process', got '{other}'")),
        }
    }
}

/// What holds for a model.
///
/// # Errors
/// Its parameter has another value than there are.
pub fn of_model(config: &ModelConfig, by_default: Isolation) -> Result<Isolation> {
    let Some(value) = config.parameters.get(KEY) else { return Ok(by_default) };
    Isolation::parse(&value.string_value)
        .map_err(|e| Error::invalid(format!("model '{}': parameter '{KEY}' {e}", config.name)))
}
