//! Whether requests of a model that would wait too long are refused on arrival.

use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_proto::v2::ModelConfig;

/// The model parameter that takes the place of `--refuse-late-requests`.
const KEY: &str = "refuse_late_requests";

/// What the command line says.
#[derive(Clone, Copy, Debug)]
pub struct LateRequests {
    pub refused: bool,
    /// The wait that is still good.
    pub target: Duration,
}

impl LateRequests {
    /// The wait that is still good, if requests of the model are refused that would wait longer.
    ///
    /// # Errors
    /// The model's parameter is neither `true` nor `false`.
    pub fn wait_target(&self, config: &ModelConfig) -> Result<Option<Duration>> {
        let refused = match config.parameters.get(KEY).map(|value| value.string_value.as_str()) {
            None => self.refused,
            Some("true") => true,
            Some("false") => false,
            Some(other) => {
                return Err(Error::invalid(format!(
                    "model '{}': parameter '{KEY}' expected 'true' or 'false', found '{other}'",
                    config.name
                )));
            }
        };
        Ok(refused.then_some(self.target))
    }
}

#[cfg(test)]
#[path = "late_requests_tests.rs"]
mod tests;
