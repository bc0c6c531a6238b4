//! Trace settings: the values of the server, and those of models that have some of their own.
//!
//! Values that a model does not have follow the server's, whose own follow those of the start. Pure:
//! a change makes a new [`TraceSetting`], so that traces in progress keep the one that sampled them.

use crate::file::TraceFile;
use crate::sampling::TraceSetting;
use std::collections::BTreeMap;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
pub use trtserver_config::{TraceLevels, TraceValues};

/// A change of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingChange<T> {
    /// The value of the server, or of the start, applies again.
    Clear,
    Set(T),
}

/// A change of settings; `None` leaves a value as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingUpdate {
    pub levels: Option<SettingChange<TraceLevels>>,
    pub rate: Option<SettingChange<u32>>,
    pub count: Option<SettingChange<i32>>,
    pub log_frequency: Option<SettingChange<u32>>,
}

impl SettingUpdate {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The values that a setting has itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnValues {
    pub levels: Option<TraceLevels>,
    pub rate: Option<u32>,
    pub count: Option<i32>,
    pub log_frequency: Option<u32>,
}

impl OwnValues {
    fn changed(self, update: &SettingUpdate) -> Self {
        fn apply<T: Copy>(own: Option<T>, change: Option<SettingChange<T>>) -> Option<T> {
            match change {
                None => own,
                Some(SettingChange::Clear) => None,
                Some(SettingChange::Set(value)) => Some(value),
            }
        }
        Self {
            levels: apply(self.levels, update.levels),
            rate: apply(self.rate, update.rate),
            count: apply(self.count, update.count),
            log_frequency: apply(self.log_frequency, update.log_frequency),
        }
    }

    fn over(self, fallback: TraceValues) -> TraceValues {
        TraceValues {
            levels: self.levels.unwrap_or(fallback.levels),
            rate: self.rate.unwrap_or(fallback.rate),
            count: self.count.unwrap_or(fallback.count),
            log_frequency: self.log_frequency.unwrap_or(fallback.log_frequency),
        }
    }
}

/// Where traces go, which decides whether a setting makes sense.
#[derive(Clone, Debug)]
pub struct TraceTarget {
    /// `None` without a file name, and in the mode of OpenTelemetry.
    pub file: Option<Arc<TraceFile>>,
    /// Traces are of use without a file: they are exported, or kept by request.
    pub without_file: bool,
}

/// All settings.
#[derive(Clone, Debug)]
pub struct SettingTable {
    start: TraceValues,
    server: Arc<TraceSetting>,
    models: BTreeMap<String, Arc<TraceSetting>>,
    target: TraceTarget,
}

impl SettingTable {
    pub fn new(start: TraceValues, target: TraceTarget) -> Self {
        let server = Arc::new(TraceSetting::new(OwnValues::default(), start, &target));
        Self { start, server, models: BTreeMap::new(), target }
    }

    /// The setting of a model; that of the server for an empty name.
    pub fn find(&self, model: &str) -> &Arc<TraceSetting> {
        if self.models.is_empty() {
            return &self.server;
        }
        self.models.get(model).unwrap_or(&self.server)
    }

    /// Some request may be sampled.
    pub fn samples(&self) -> bool {
        self.server.is_active() || self.models.values().any(|setting| setting.is_active())
    }

    /// The table after a change of a model's values; of the server's for an empty name.
    ///
    /// # Errors
    /// The new setting traces, but cannot.
    pub fn changed(&self, model: &str, update: &SettingUpdate) -> Result<Self> {
        let mut table = self.clone();
        if !model.is_empty() {
            table.change_model(model, update)?;
            return Ok(table);
        }
        let own = self.server.own().changed(update);
        table.server = self.setting(own, self.start)?;
        // Models follow the server in what they do not have themselves.
        let partly: Vec<String> = self.models.keys().cloned().collect();
        for model in partly {
            table.change_model(&model, &SettingUpdate::default())?;
        }
        Ok(table)
    }

    fn change_model(&mut self, model: &str, update: &SettingUpdate) -> Result<()> {
        let own = self.models.get(model).map(|setting| setting.own()).unwrap_or_default();
        let own = own.changed(update);
        if own == OwnValues::default() {
            self.models.remove(model);
            return Ok(());
        }
        let setting = self.setting(own, self.server.values())?;
        self.models.insert(model.to_owned(), setting);
        Ok(())
    }

    fn setting(&self, own: OwnValues, fallback: TraceValues) -> Result<Arc<TraceSetting>> {
        let values = own.over(fallback);
        let setting = TraceSetting::new(own, values, &self.target);
        match setting.problem() {
            Some(problem) if values.levels.any() => {
                let text = format!("Attempting to set invalid trace setting :{problem}");
                Err(Error::invalid(text))
            }
            _ => Ok(Arc::new(setting)),
        }
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
