//! `POST /v2/trace/setting`: changes of trace settings as JSON.

use super::json::access::{expect_text, wrong_type};
use super::json::{self, JsonValue};
use crate::trace_settings::TraceChange;
use std::borrow::Cow;
use trtserver_base::error::Result;

/// Reads a body: an object, or nothing. `null` clears a setting.
///
/// # Errors
/// It is malformed, or a value is invalid.
pub fn read_trace_change(body: &[u8]) -> Result<TraceChange> {
    let mut change = TraceChange::default();
    if body.trim_ascii().is_empty() {
        return Ok(change);
    }
    let JsonValue::Object(settings) = json::parse_json(body)? else {
        return Err(wrong_type("request", "object"));
    };
    for member in settings.members() {
        let (key, value) = member?;
        let key = String::from_utf8_lossy(&key);
        let values: Vec<Cow<'_, str>> = match &value {
            JsonValue::Null => Vec::new(),
            JsonValue::Array(values) => {
                let mut texts = Vec::new();
                for value in values.elements() {
                    texts.push(expect_text(&key, &value?)?.into_owned().into());
                }
                texts
            }
            JsonValue::Number(token) => vec![String::from_utf8_lossy(token)],
            value => vec![expect_text(&key, value)?],
        };
        change.add(&key, &values)?;
    }
    Ok(change)
}
