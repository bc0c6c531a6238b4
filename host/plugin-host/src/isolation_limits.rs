//! Deadlines of isolated models: for responses and for opening. Two backend settings, each also a
//! model parameter.

use crate::isolation;
use std::collections::BTreeMap;
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_proto::v2::ModelConfig;

/// Settings with this prefix are the host's and are not passed to the backend.
const PREFIX: &str = "isolation";
const RESPONSE: [&str; 2] = ["isolation-deadline-seconds", "isolation_deadline_seconds"];
const OPEN: [&str; 2] = ["isolation-open-deadline-seconds", "isolation_open_deadline_seconds"];

/// `None` = no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IsolationLimits {
    /// From a request to its first response, and between responses while requests are outstanding.
    pub response: Option<Duration>,
    /// For each step of opening: backend info, completion of the configuration, model, instance.
    pub open: Option<Duration>,
}

impl Default for IsolationLimits {
    fn default() -> Self {
        Self { response: Some(Duration::from_secs(300)), open: Some(Duration::from_secs(600)) }
    }
}

impl IsolationLimits {
    /// Takes the host's own settings out of a backend's.
    ///
    /// # Errors
    /// An invalid value or an unknown setting of that prefix; the text names it.
    pub fn take(settings: &mut BTreeMap<String, String>) -> Result<Self, String> {
        let mut limits = Self::default();
        let ours: Vec<String> =
            settings.keys().filter(|key| key.starts_with(PREFIX)).cloned().collect();
        for key in ours {
            let value = settings.remove(&key).unwrap_or_default();
            let limit = match &*key {
                key if key == RESPONSE[0] => &mut limits.response,
                key if key == OPEN[0] => &mut limits.open,
                _ => return Err(format!("setting '{key}' is unknown")),
            };
            *limit = parse_seconds(&value).map_err(|e| format!("setting '{key}' {e}"))?;
        }
        Ok(limits)
    }

    /// With an open deadline of at most `limit`.
    pub fn at_most(mut self, limit: Duration) -> Self {
        self.open = Some(self.open.map_or(limit, |open| open.min(limit)));
        self
    }

    /// The limits of a model: its parameters, else these.
    ///
    /// # Errors
    /// An invalid value or an unknown parameter of that prefix.
    pub fn for_model(mut self, config: &ModelConfig) -> Result<Self> {
        let known = [isolation::KEY, RESPONSE[1], OPEN[1]];
        let mut ours = config.parameters.keys().filter(|key| key.starts_with(PREFIX));
        if let Some(key) = ours.find(|key| !known.contains(&key.as_str())) {
            return Err(Error::invalid(format!(
                "model '{}': parameter '{key}' is unknown, expected one of '{}'",
                config.name,
                known.join("', '")
            )));
        }
        for (key, limit) in [(RESPONSE[1], &mut self.response), (OPEN[1], &mut self.open)] {
            if let Some(value) = config.parameters.get(key) {
                *limit = parse_seconds(&value.string_value).map_err(|e| {
                    Error::invalid(format!("model '{}': parameter '{key}' {e}", config.name))
                })?;
            }
        }
        Ok(self)
    }
}

fn parse_seconds(value: &str) -> Result<Option<Duration>, String> {
    let seconds = value.trim().parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    match seconds {
        Some(limit) => Ok(Some(limit).filter(|limit| !limit.is_zero())),
        None => Err(format!("must be a number of seconds, 0 for no limit, got '{value}'")),
    }
}

#[cfg(test)]
#[path = "isolation_limits_tests.rs"]
mod tests;
