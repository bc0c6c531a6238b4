//! Typed access to JSON values, with the error texts of Triton's JSON layer.

use super::{JsonArray, JsonValue};
use std::borrow::Cow;
use trtserver_base::error::{Error, Result};

/// `attempt to access JSON …`, an error of the JSON layer.
pub fn wrong_type(field: &str, expected: &str) -> Error {
    Error::internal(format!(
        "Unable to parse '{field}': attempt to access JSON non-{expected} as {expected}"
    ))
}

/// A required member. A value that is not an object has no members, and the error is the same.
pub fn expect_member<'o, 'a>(
    value: &'o Option<JsonValue<'a>>,
    key: &str,
) -> Result<&'o JsonValue<'a>> {
    value.as_ref().ok_or_else(|| {
        Error::internal(format!(
            "Unable to parse '{key}': attempt to access non-existing object member '{key}'"
        ))
    })
}

pub fn expect_text<'v>(field: &str, value: &'v JsonValue<'_>) -> Result<Cow<'v, str>> {
    match value {
        JsonValue::String(text) => Ok(lossy(text)),
        _ => Err(wrong_type(field, "string")),
    }
}

/// Bytes as text. `from_utf8` first, because it is much faster than `from_utf8_lossy`.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

pub fn expect_array<'a>(field: &str, value: &JsonValue<'a>) -> Result<JsonArray<'a>> {
    match value {
        JsonValue::Array(array) => Ok(*array),
        _ => Err(wrong_type(field, "array")),
    }
}

pub fn expect_unsigned(field: &str, value: &JsonValue<'_>) -> Result<u64> {
    as_unsigned(value).ok_or_else(|| wrong_type(field, "unsigned-integer"))
}

fn token<'a>(value: &JsonValue<'a>) -> Option<&'a str> {
    match value {
        JsonValue::Number(token) => std::str::from_utf8(token).ok(),
        _ => None,
    }
}

/// A non-negative JSON integer; `-0` is one, `1.0` is not.
pub fn as_unsigned(value: &JsonValue<'_>) -> Option<u64> {
    match token(value)? {
        "-0" => Some(0),
        token => token.parse().ok(),
    }
}

/// A JSON integer.
pub fn as_signed(value: &JsonValue<'_>) -> Option<i64> {
    token(value)?.parse().ok()
}

/// Any number, including `NaN` and infinities.
pub fn expect_real(field: &str, value: &JsonValue<'_>) -> Result<f64> {
    match token(value) {
        // An integer, which has no negative zero.
        Some("-0") => Some(0.0),
        Some(token) => token.parse().ok(),
        None => None,
    }
    .ok_or_else(|| {
        Error::internal(format!(
            "Unable to parse '{field}': attempt to access JSON non-number as double"
        ))
    })
}
