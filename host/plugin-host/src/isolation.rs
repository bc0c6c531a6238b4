//! The isolation setting: whether models run in the server's process (local) or in child processes
//! (isolated).
//!
//! Precedence, highest first: `--backend-config=NAME,isolation=process`, the model's parameter,
//! `--backend-config` with `none`, `plugin.toml`, the backend's `MUST_ISOLATE` flag. The default is
//! local. So a model may only tighten what the operator has set.

use trtserver_base::error::{Error, Result};
use trtserver_proto::v2::ModelConfig;

/// Name of the model parameter and of the backend setting.
pub const KEY: &str = "isolation";

/// Where the models of a backend run: in the server (`None`), or in child processes (`Process`).
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

    pub fn text(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Process => "process",
        }
    }
}

/// Where models of a backend run, and whether a model may say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsolationSetting {
    by_default: Isolation,
    /// The operator has set it.
    is_set: bool,
}

impl IsolationSetting {
    /// `set` is what the operator has set.
    pub fn new(set: Option<Isolation>, otherwise: Isolation) -> Self {
        Self { by_default: set.unwrap_or(otherwise), is_set: set.is_some() }
    }

    /// Unless the model's configuration says otherwise.
    pub fn by_default(self) -> Isolation {
        self.by_default
    }

    /// No model can run in the server's process.
    fn is_enforced(self) -> bool {
        self.is_set && self.by_default == Isolation::Process
    }
}

/// The setting for a model.
///
/// # Errors
/// Its parameter has an unknown value, or undoes what the operator has set.
pub fn choose_isolation(config: &ModelConfig, setting: IsolationSetting) -> Result<Isolation> {
    let Some(value) = config.parameters.get(KEY) else { return Ok(setting.by_default) };
    let asked = Isolation::parse(&value.string_value)
        .map_err(|e| Error::invalid(format!("model '{}': parameter '{KEY}' {e}", config.name)))?;
    if asked == Isolation::None && setting.is_enforced() {
        return Err(Error::invalid(format!(
            "model '{}': parameter '{KEY}' is 'none', but the server was started with --backend-config={},{KEY}=process, which a \
             model cannot undo",
            config.name, config.backend
        )));
    }
    Ok(asked)
}

#[cfg(test)]
#[path = "isolation_tests.rs"]
mod tests;
