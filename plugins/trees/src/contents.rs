//! What a file is, from its bytes, and whether it is complete.
//!
//! The libraries trust their files: a truncated one may end the process. So what can be checked
//! without them is checked first.

use crate::lightgbm_text::check_text;
use crate::parameters::{LIGHTGBM, XGBOOST};
use crate::ubjson;
use crate::xgboost_trees::{check_json_trees, check_ubjson_trees};
use serde::de::IgnoredAny;
use trtserver_framework::file_contents::explain_foreign;

/// The form of a model's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    LightGbm,
    XgBoostJson,
    XgBoostUbj,
    /// The form that releases before 3.1 could write: only they read it.
    XgBoostBinary,
}

/// How many bytes at the beginning of a file tell its form.
pub const HEAD: usize = 512;

impl Format {
    pub fn platform(self) -> &'static str {
        match self {
            Format::LightGbm => LIGHTGBM,
            _ => XGBOOST,
        }
    }

    /// For messages.
    pub fn title(self) -> &'static str {
        match self {
            Format::LightGbm => "a LightGBM model",
            Format::XgBoostJson => "an XGBoost model in JSON",
            Format::XgBoostUbj => "an XGBoost model in UBJSON",
            Format::XgBoostBinary => "an XGBoost model in the binary form of old releases",
        }
    }

    /// The form of a file that begins with these bytes.
    pub fn recognise(head: &[u8]) -> Option<Format> {
        let head = &head[..head.len().min(HEAD)];
        let has_learner = find(head, b"learner").is_some();
        match head {
            [b't', b'r', b'e', b'e', b'\r' | b'\n', ..] => Some(Format::LightGbm),
            // The length of a key follows, in one of the types of UBJSON.
            [b'{', b'L' | b'l' | b'I' | b'i' | b'U', ..] if has_learner => Some(Format::XgBoostUbj),
            [b'{', ..] if has_learner => Some(Format::XgBoostJson),
            [b'b', b'i', b'n', b'f', ..] => Some(Format::XgBoostBinary),
            _ => None,
        }
    }
}

/// The form of a file. `binary`: a file that is not recognised may be of XGBoost's old form, which
/// begins with numbers.
///
/// # Errors
/// What the file is instead.
pub fn recognise_file(bytes: &[u8], binary: bool) -> Result<Format, String> {
    if let Some(format) = Format::recognise(bytes) {
        return Ok(format);
    }
    if let Some(what) = explain_foreign(bytes) {
        return Err(what.to_owned());
    }
    let is_text = !bytes[..bytes.len().min(HEAD)].contains(&0);
    match bytes.first() {
        Some(b'{') if is_text => Err("the file is JSON and not a model of XGBoost, whose JSON begins with the key \
             \"learner\": perhaps the error of a server that it was downloaded from, or a dump for people \
             (`dump_model`), which cannot be loaded"
            .to_owned()),
        Some(b'[' | b'b') if is_text => Err("the file is a text and not a model: perhaps a dump of XGBoost for people \
             (`dump_model`), which cannot be loaded; `save_model` writes a model"
            .to_owned()),
        _ if binary && !is_text => Ok(Format::XgBoostBinary),
        Some(0x80) => Err("the file is a pickle of Python, which only Python reads: `booster.save_model` of the framework \
             writes a model"
            .to_owned()),
        _ => Err(format!(
            "the file of {} bytes is neither a model of LightGBM, which begins with the line \"tree\", nor one of \
             XGBoost in JSON or UBJSON",
            bytes.len()
        )),
    }
}

/// # Errors
/// The file is truncated, or its trees lead to places that do not exist.
pub fn check_contents(format: Format, bytes: &[u8]) -> Result<(), String> {
    check_form(format, bytes)?;
    match format {
        Format::XgBoostJson => check_json_trees(bytes),
        Format::XgBoostUbj => check_ubjson_trees(bytes),
        Format::LightGbm | Format::XgBoostBinary => Ok(()),
    }
}

/// # Errors
/// The file is not complete, or not of its form.
fn check_form(format: Format, bytes: &[u8]) -> Result<(), String> {
    match format {
        Format::LightGbm => check_text(bytes),
        Format::XgBoostJson => check_json(bytes),
        Format::XgBoostUbj => check_ubjson(bytes),
        Format::XgBoostBinary => Ok(()),
    }
}

pub fn truncated(bytes: &[u8]) -> String {
    format!(
        "the file is truncated: it ends within the model, after {} bytes; copy or download it again",
        bytes.len()
    )
}

/// Position of `part`.
pub fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// Brackets and strings of JSON, which tells a truncated file from a damaged one.
fn check_json(bytes: &[u8]) -> Result<(), String> {
    let mut open = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    for (at, &byte) in bytes.iter().enumerate() {
        if in_string {
            (in_string, escaped) = match byte {
                _ if escaped => (true, false),
                b'\\' => (true, true),
                b'"' => (false, false),
                _ => (true, false),
            };
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' if open.pop() != Some(byte) => {
                return Err(format!("the file is not JSON: byte {at} closes what is not open"));
            }
            _ => {}
        }
        let is_nested = open.len() <= MAX_DEPTH;
        if !is_nested {
            return Err(too_deep());
        }
        if open.is_empty() && !in_string {
            let rest = bytes[at + 1..].iter().all(u8::is_ascii_whitespace);
            return if rest { Ok(()) } else { Err(trailing(at + 1, bytes.len())) };
        }
    }
    Err(truncated(bytes))
}

/// XGBoost's own models are eight levels deep. Its reader uses the stack for each.
pub const MAX_DEPTH: usize = 64;

pub fn too_deep() -> String {
    format!("the file is nested more than {MAX_DEPTH} levels deep, which no model of XGBoost is")
}

pub fn trailing(at: usize, end: usize) -> String {
    format!("the model ends at byte {at} and the file goes on for {} bytes", end - at)
}

/// The lengths of UBJSON.
fn check_ubjson(bytes: &[u8]) -> Result<(), String> {
    ubjson::read::<IgnoredAny>(bytes).map(drop).map_err(|fault| fault.explain(bytes))
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;
