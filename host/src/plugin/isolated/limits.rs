//! How long the process of an isolated model may be silent: two settings, each also a parameter of the model.

use crate::error::{Error, Result};
use crate::plugin::isolation;
use std::collections::BTreeMap;
use std::time::Duration;
use trtserver_proto::v2::ModelConfig;

/// What the host keeps for itself of a backend's settings begins with this.
const OURS: &str = "isolation";
const ANSWER: [&str; 2] = ["isolation-deadline-seconds", "isolation_deadline_seconds"];
const OPEN: [&str; 2] = ["isolation-open-deadline-seconds", "isolation_open_deadline_seconds"];

/// `None` = for ever.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// From a request to its answer, or from one answer to the next while any is owed.
    pub answer: Option<Duration>,
    /// For each step of a start: describing, completing, opening the model, opening an instance.
    pub open: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { answer: Some(Duration::from_secs(300)), open: Some(Duration::from_secs(600)) }
    }
}

impl Limits {
    /// Takes the host's own settings out of a backend's.
    ///
    /// # Errors
    /// A value that is none, or a setting of that prefix that there is not; the text names it.
    pub fn take(settings: &mut BTreeMap<String, String>) -> Result<Self, String> {
        let mut limits = Self::default();
        let ours: Vec<String> =
            settings.keys().filter(|key| key.starts_with(OURS)).cloned().collect();
        for key in ours {
            let value = settings.remove(&key).unwrap_or_default();
            let limit = match &*key {
                key if key == ANSWER[0] => &mut limits.answer,
                key if key == OPEN[0] => &mut limits.open,
                _ => return Err(format!("setting '{key}' is unknown")),
            };
            *limit = parse(&value).map_err(|e| format!("setting '{key}' {e}"))?;
        }
        Ok(limits)
    }

    /// What holds for a model.
    ///
    /// # Errors
    /// One of its parameters has no usable value, or is of that prefix and means nothing.
    pub fn of_model(mut self, config: &ModelConfig) -> Result<Self> {
        let known = [isolation::KEY, ANSWER[1], OPEN[1]];
        let mut ours = config.parameters.keys().filter(|key| key.starts_with(OURS));
        if let Some(key) = ours.find(|key| !known.contains(&key.as_str())) {
            return Err(Error::invalid(format!(
                "model '{}': parameter '{key}' is unknown; there are '{}'",
                config.name,
                known.join("', '")
            )));
        }
        for (key, limit) in [(ANSWER[1], &mut self.answer), (OPEN[1], &mut self.open)] {
            if let Some(value) = config.parameters.get(key) {
                *limit = parse(&value.string_value).map_err(|e| {
                    Error::invalid(format!("model '{}': parameter '{key}' {e}", config.name))
                })?;
            }
        }
        Ok(self)
    }
}

fn parse(value: &str) -> Result<Option<Duration>, String> {
    let seconds = value.trim().parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    match seconds {
        Some(limit) => Ok(Some(limit).filter(|limit| !limit.is_zero())),
        None => Err(format!("must be a number of seconds, 0 for no limit, got '{value}'")),
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
