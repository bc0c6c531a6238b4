//! `POST /v2/logging`: changes of log settings as JSON.

use super::json::access::{expect_text, expect_unsigned, wrong_type};
use super::json::{self, JsonValue as Json};
use crate::log_settings::{SettingKind, SettingValue, parse_log_format, setting_kind};
use trtserver_base::error::{Error, Result};

/// The changes in a body: an object, or nothing. A setting that is null does not change.
pub fn read_log_settings(body: &[u8]) -> Result<Vec<(String, SettingValue)>> {
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let Json::Object(object) = json::parse_json(body)? else {
        return Err(wrong_type("request", "object"));
    };
    let mut changes = Vec::new();
    for member in object.members() {
        let (key, value) = member?;
        let key = String::from_utf8_lossy(&key).into_owned();
        let kind = setting_kind(&key)?;
        if !matches!(value, Json::Null) {
            let value = read_value(&key, kind, &value)?;
            changes.push((key, value));
        }
    }
    Ok(changes)
}

fn read_value(key: &str, kind: SettingKind, value: &Json<'_>) -> Result<SettingValue> {
    match (kind, value) {
        (SettingKind::Switch, Json::Bool(on)) => Ok(SettingValue::Switch(*on)),
        (SettingKind::Switch, _) => Err(wrong_type(key, "boolean")),
        (SettingKind::Level, value) => {
            let level = expect_unsigned(key, value)?;
            let too_large =
                |_| Error::invalid(format!("'{key}' is {level}, at most {} is possible", u32::MAX));
            u32::try_from(level).map(SettingValue::Level).map_err(too_large)
        }
        (SettingKind::Format, value) => {
            let name = expect_text(key, value)?;
            // Triton's status, and its spelling of the flag's name.
            let unknown =
                || Error::unavailable(format!("invalid argument for --log_format, got: {name}"));
            parse_log_format(&name).map(SettingValue::Format).ok_or_else(unknown)
        }
    }
}

#[cfg(test)]
#[path = "log_settings_tests.rs"]
mod tests;
