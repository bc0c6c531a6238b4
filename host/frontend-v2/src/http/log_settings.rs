//! `POST /v2/logging`: changes of log settings as JSON.

use super::json::access::{text, unsigned, wrong_type};
use super::json::{self, Value as Json};
use crate::log_settings::{Kind, Value, format, kind};
use trtserver_base::error::{Error, Result};

/// The changes in a body: an object, or nothing. A setting that is null does not change.
pub fn read(body: &[u8]) -> Result<Vec<(String, Value)>> {
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let Json::Object(object) = json::parse(body)? else {
        return Err(wrong_type("request", "object"));
    };
    let mut changes = Vec::new();
    for member in object.members() {
        let (key, value) = member?;
        let key = String::from_utf8_lossy(&key).into_owned();
        let kind = kind(&key)?;
        if !matches!(value, Json::Null) {
            let value = read_value(&key, kind, &value)?;
            changes.push((key, value));
        }
    }
    Ok(changes)
}

fn read_value(key: &str, kind: Kind, value: &Json<'_>) -> Result<Value> {
    match (kind, value) {
        (Kind::Switch, Json::Bool(on)) => Ok(Value::Switch(*on)),
        (Kind::Switch, _) => Err(wrong_type(key, "boolean")),
        (Kind::Level, value) => {
            let level = unsigned(key, value)?;
            let too_large =
                |_| Error::invalid(format!("'{key}' is {level}, at most {} is possible", u32::MAX));
            u32::try_from(level).map(Value::Level).map_err(too_large)
        }
        (Kind::Format, value) => {
            let name = text(key, value)?;
            // Triton's status, and its spelling of the flag's name.
            let unknown =
                || Error::unavailable(format!("invalid argument for --log_format, got: {name}"));
            format(&name).map(Value::Format).ok_or_else(unknown)
        }
    }
}

#[cfg(test)]
#[path = "log_settings_tests.rs"]
mod tests;
