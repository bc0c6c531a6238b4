//! Log settings (docs/protocol/v2.md §2.18): levels and format change at run time, the log file
//! does not. HTTP and gRPC read the values of a change and word the errors for wrong ones
//! differently.

use trtserver_base::error::{Error, Result};
use trtserver_config::{LogFormat, LogSettings};
use trtserver_proto::v2::log_settings_response::setting_value::ParameterChoice as Log;
use trtserver_wire::context::FrontendContext;

/// What a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    Switch,
    Level,
    Format,
}

/// The new value of one setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SettingValue {
    Switch(bool),
    Level(u32),
    Format(LogFormat),
}

/// What the setting `key` takes.
///
/// # Errors
/// The setting does not exist, or does not change at run time.
pub fn setting_kind(key: &str) -> Result<SettingKind> {
    match key {
        "log_info" | "log_warning" | "log_error" => Ok(SettingKind::Switch),
        "log_verbose_level" => Ok(SettingKind::Level),
        "log_format" => Ok(SettingKind::Format),
        "log_file" => {
            let why = "log file location can not be updated through network protocol";
            Err(Error::unsupported(why))
        }
        _ => Err(Error::invalid(format!(
            "unknown log setting '{key}', expected log_info, log_warning, log_error, log_verbose_level or log_format"
        ))),
    }
}

/// The format of this name.
pub fn parse_log_format(name: &str) -> Option<LogFormat> {
    FORMATS.into_iter().find(|(known, _)| *known == name).map(|(_, format)| format)
}

const FORMATS: [(&str, LogFormat); 3] =
    [("default", LogFormat::Default), ("ISO8601", LogFormat::Iso8601), ("json", LogFormat::Json)];

/// Changes the settings of these keys together.
pub fn change_log_settings(ctx: &FrontendContext, values: &[(String, SettingValue)]) {
    if values.is_empty() {
        return;
    }
    ctx.log.change(|settings| {
        values.iter().for_each(|(key, value)| apply_setting(settings, key, *value))
    });
    let changed: Vec<&str> = values.iter().map(|(key, _)| key.as_str()).collect();
    tracing::info!("log settings changed: {}", changed.join(", "));
}

fn apply_setting(settings: &mut LogSettings, key: &str, value: SettingValue) {
    match (key, value) {
        ("log_info", SettingValue::Switch(on)) => settings.info = on,
        ("log_warning", SettingValue::Switch(on)) => settings.warning = on,
        ("log_error", SettingValue::Switch(on)) => settings.error = on,
        (_, SettingValue::Level(level)) => settings.verbose = level,
        (_, SettingValue::Format(format)) => settings.format = format,
        _ => {}
    }
}

/// All settings, in the order of the protocol text.
pub fn current_log_settings(ctx: &FrontendContext) -> [(&'static str, Log); 6] {
    let log = ctx.log.settings();
    let file = log.file.as_ref().map(|f| f.display().to_string()).unwrap_or_default();
    let format = FORMATS.into_iter().find(|(_, format)| *format == log.format);
    let format = format.map_or("default", |(name, _)| name);
    [
        ("log_file", Log::StringParam(file)),
        ("log_info", Log::BoolParam(log.info)),
        ("log_warning", Log::BoolParam(log.warning)),
        ("log_error", Log::BoolParam(log.error)),
        ("log_verbose_level", Log::Uint32Param(log.verbose)),
        ("log_format", Log::StringParam(format.to_owned())),
    ]
}
