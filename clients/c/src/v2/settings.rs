//! Trace and log settings of a v2 server, as JSON objects.

use super::client::{Error, V2Client};
use crate::arguments::{optional_text, result_place};
use crate::buffer::ByteBuffer;
use crate::failure::{ClientFailure, Outcome, guard_call};
use crate::handle::ObjectHandle;
use serde_json::{Map, Value};
use std::ffi::c_char;
use trtserver_client::v2::{Client, LogSettings, LogValue, TraceSettings};

/// The changes as an object; none if the text is NULL.
unsafe fn object(changes: *const c_char) -> Outcome<Map<String, Value>> {
    // SAFETY: the contract of the caller.
    let Some(text) = (unsafe { optional_text(changes, "changes") })? else { return Ok(Map::new()) };
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => {
            Err(ClientFailure::argument(format!("changes are `{other}`, expected an object")))
        }
        Err(e) => Err(ClientFailure::argument(format!("changes are not JSON: {e}"))),
    }
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_trace_settings(
    client: ObjectHandle<V2Client>,
    model: *const c_char,
    changes: *const c_char,
    deadline_us: u64,
    json: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (model, changes, place) = unsafe {
            (
                optional_text(model, "the model's name")?,
                object(changes)?,
                result_place(json, "json")?,
            )
        };
        let (model, mut settings) = (model.unwrap_or_default(), TraceSettings::new());
        for (name, value) in changes {
            settings.insert(name, texts(value)?);
        }
        let request = async |c: Client| c.trace_settings(model, &settings).await;
        let all = client.get()?.run(deadline_us, request)?;
        let object = all.into_iter().map(|(name, mut values)| {
            // As the HTTP endpoint sends them: a list only for the levels.
            let value = match name.as_str() {
                "trace_level" | "trace_config" => Value::from(values),
                _ => Value::from(values.pop().unwrap_or_default()),
            };
            (name, value)
        });
        place.write(ByteBuffer::from_bytes(Value::Object(object.collect()).to_string()));
        Ok(())
    })
}

/// The values of a trace setting; null clears it.
fn texts(value: Value) -> Outcome<Vec<String>> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(values) => {
            Ok(values.into_iter().map(texts).collect::<Outcome<Vec<_>>>()?.concat())
        }
        Value::String(text) => Ok(vec![text]),
        Value::Object(_) => {
            Err(ClientFailure::argument("a trace setting is an object, expected a text"))
        }
        other => Ok(vec![other.to_string()]),
    }
}

/// # Safety
/// See [`trtc_v2_trace_settings`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_log_settings(
    client: ObjectHandle<V2Client>,
    changes: *const c_char,
    deadline_us: u64,
    json: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (changes, place) = unsafe { (object(changes)?, result_place(json, "json")?) };
        let mut settings = LogSettings::new();
        for (name, value) in changes {
            let value = match value {
                Value::Bool(value) => LogValue::Bool(value),
                Value::String(value) => LogValue::Text(value),
                Value::Number(value) if value.as_u64().is_some_and(|n| n <= u32::MAX.into()) => {
                    LogValue::Number(value.as_u64().unwrap_or_default() as u32)
                }
                other => {
                    return Err(ClientFailure::argument(format!(
                        "log setting '{name}' is `{other}`, expected true, false, a number or a text"
                    )));
                }
            };
            settings.insert(name, value);
        }
        let request = async |c: Client| c.log_settings(&settings).await;
        let all = client.get()?.run(deadline_us, request)?;
        let object = all.into_iter().map(|(name, value)| {
            let value = match value {
                LogValue::Bool(value) => Value::from(value),
                LogValue::Number(value) => Value::from(value),
                LogValue::Text(value) => Value::from(value),
            };
            (name, value)
        });
        place.write(ByteBuffer::from_bytes(Value::Object(object.collect()).to_string()));
        Ok(())
    })
}
