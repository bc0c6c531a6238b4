//! Options of model loading, and the trace and log settings of the server.

use bytes::Bytes;
use std::collections::BTreeMap;
use trtserver_proto::v2::log_settings_request::SettingValue as LogRequestValue;
use trtserver_proto::v2::log_settings_request::setting_value::ParameterChoice as LogRequestChoice;
use trtserver_proto::v2::log_settings_response::setting_value::ParameterChoice as LogResponseChoice;
use trtserver_proto::v2::model_repository_parameter::ParameterChoice;
use trtserver_proto::v2::trace_setting_request::SettingValue as TraceValue;
use trtserver_proto::v2::{LogSettingsResponse, ModelRepositoryParameter};

/// What a model is loaded from, instead of its directory.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The configuration as JSON, instead of the file's.
    pub config: Option<String>,
    /// `VERSION/PATH` and contents. Needs `config`.
    pub files: Vec<(String, Bytes)>,
}

impl LoadOptions {
    pub(super) fn parameters(&self) -> BTreeMap<String, ModelRepositoryParameter> {
        let config = self.config.iter().map(|config| {
            ("config".to_owned(), parameter(ParameterChoice::StringParam(config.clone())))
        });
        let files = self.files.iter().map(|(path, contents)| {
            (file_key(path), parameter(ParameterChoice::BytesParam(contents.clone())))
        });
        config.chain(files).collect()
    }
}

/// `file:PATH`, as clients name files; a path may have the prefix already.
pub(super) fn file_key(path: &str) -> String {
    if path.starts_with("file:") { path.to_owned() } else { format!("file:{path}") }
}

pub(super) fn unload_parameters(dependents: bool) -> BTreeMap<String, ModelRepositoryParameter> {
    let value = parameter(ParameterChoice::BoolParam(dependents));
    BTreeMap::from([("unload_dependents".to_owned(), value)])
}

fn parameter(choice: ParameterChoice) -> ModelRepositoryParameter {
    ModelRepositoryParameter { parameter_choice: Some(choice) }
}

/// Trace settings by name. Most have one value, `trace_level` several.
pub type TraceSettings = BTreeMap<String, Vec<String>>;

/// Log settings by name.
pub type LogSettings = BTreeMap<String, LogValue>;

/// A value of a log setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogValue {
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(u32),
    /// A text.
    Text(String),
}

pub(super) fn trace_request(changes: &TraceSettings) -> BTreeMap<String, TraceValue> {
    changes
        .iter()
        .map(|(name, values)| (name.clone(), TraceValue { value: values.clone() }))
        .collect()
}

pub(super) fn log_request(changes: &LogSettings) -> BTreeMap<String, LogRequestValue> {
    let value = |value: &LogValue| match value {
        LogValue::Bool(value) => LogRequestChoice::BoolParam(*value),
        LogValue::Number(value) => LogRequestChoice::Uint32Param(*value),
        LogValue::Text(value) => LogRequestChoice::StringParam(value.clone()),
    };
    changes
        .iter()
        .map(|(name, v)| (name.clone(), LogRequestValue { parameter_choice: Some(value(v)) }))
        .collect()
}

pub(super) fn log_response(response: LogSettingsResponse) -> LogSettings {
    let value = |choice| match choice {
        LogResponseChoice::BoolParam(value) => LogValue::Bool(value),
        LogResponseChoice::Uint32Param(value) => LogValue::Number(value),
        LogResponseChoice::StringParam(value) => LogValue::Text(value),
    };
    let settings = response.settings.into_iter();
    settings.filter_map(|(name, s)| Some((name, value(s.parameter_choice?)))).collect()
}
