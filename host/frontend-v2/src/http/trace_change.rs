//! `POST /v2/trace/setting`: changes of trace settings as JSON.

use super::json::access::{expect_text, wrong_type};
use super::json::{self, JsonValue};
use crate::trace_settings;
use std::borrow::Cow;
use trtserver_base::error::Result;

/// Reads a body: an object, or nothing. `null` restores the value that a setting had at the start.
///
/// # Errors
/// It is malformed, or changes a setting.
pub fn expect_no_change(body: &[u8]) -> Result<()> {
    if body.trim_ascii().is_empty() {
        return Ok(());
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
        trace_settings::expect_unchanged(&key, &values)?;
    }
    Ok(())
}
