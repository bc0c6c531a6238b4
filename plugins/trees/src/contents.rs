//! What a file is, from its bytes, and whether it is complete.
//!
//! The libraries trust their files: a truncated one may end the process. So what can be checked
//! without them is checked first.

use crate::lightgbm_text::check_text;
use crate::parameters::{LIGHTGBM, XGBOOST};
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

/// Brackets and strings of JSON. A parser of JSON refuses the values NaN and Infinity, which
/// XGBoost writes.
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
const MAX_DEPTH: usize = 64;

fn too_deep() -> String {
    format!("the file is nested more than {MAX_DEPTH} levels deep, which no model of XGBoost is")
}

fn trailing(at: usize, end: usize) -> String {
    format!("the model ends at byte {at} and the file goes on for {} bytes", end - at)
}

/// The lengths of UBJSON.
fn check_ubjson(bytes: &[u8]) -> Result<(), String> {
    let mut reader = UbjReader { bytes, at: 0 };
    match reader.value(0) {
        Ok(()) if reader.at == bytes.len() => Ok(()),
        Ok(()) => Err(trailing(reader.at, bytes.len())),
        Err(UbjFault::Truncated) => Err(truncated(bytes)),
        Err(UbjFault::Marker(at)) => Err(format!(
            "the file is not UBJSON: byte {at} is {} where a type was expected",
            bytes[at]
        )),
        Err(UbjFault::Depth) => Err(too_deep()),
        Err(UbjFault::Length(at)) => Err(format!(
            "the file is damaged: the length at byte {at} is negative or beyond the file"
        )),
    }
}

enum UbjFault {
    Truncated,
    /// At this byte.
    Marker(usize),
    Length(usize),
    Depth,
}

struct UbjReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl UbjReader<'_> {
    fn next(&mut self) -> Result<u8, UbjFault> {
        let byte = self.bytes.get(self.at).copied().ok_or(UbjFault::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    fn peek(&self) -> Result<u8, UbjFault> {
        self.bytes.get(self.at).copied().ok_or(UbjFault::Truncated)
    }

    fn skip(&mut self, n: usize) -> Result<(), UbjFault> {
        match self.at.checked_add(n).filter(|end| *end <= self.bytes.len()) {
            Some(end) => {
                self.at = end;
                Ok(())
            }
            None => Err(UbjFault::Truncated),
        }
    }

    /// A length: an integer with its type.
    fn length(&mut self) -> Result<usize, UbjFault> {
        let at = self.at;
        let marker = self.next()?;
        let size = fixed_size(marker).filter(|_| marker != b'd' && marker != b'D');
        let size = size.ok_or(UbjFault::Marker(at))?;
        let start = self.at;
        self.skip(size)?;
        let digits = &self.bytes[start..self.at];
        // Signed, but for `U`.
        let negative = marker != b'U' && digits.first().is_some_and(|first| *first > 0x7f);
        let value = digits.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        match usize::try_from(value) {
            Ok(value) if !negative => Ok(value),
            _ => Err(UbjFault::Length(at)),
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), UbjFault> {
        let at = self.at;
        let marker = self.next()?;
        if depth > MAX_DEPTH {
            return Err(UbjFault::Depth);
        }
        if let Some(size) = fixed_size(marker) {
            return self.skip(size);
        }
        match marker {
            b'Z' | b'T' | b'F' | b'N' => Ok(()),
            b'S' => {
                let length = self.length()?;
                self.skip(length)
            }
            b'{' => {
                while self.peek()? != b'}' {
                    let key = self.length()?;
                    self.skip(key)?;
                    self.value(depth + 1)?;
                }
                self.skip(1)
            }
            b'[' => self.array(depth),
            _ => Err(UbjFault::Marker(at)),
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), UbjFault> {
        match self.peek()? {
            b'$' => {
                self.skip(1)?;
                let at = self.at;
                let kind = self.next()?;
                let size = fixed_size(kind).ok_or(UbjFault::Marker(at))?;
                let hash = self.at;
                if self.next()? != b'#' {
                    return Err(UbjFault::Marker(hash));
                }
                let count = self.length()?;
                let bytes = count.checked_mul(size).ok_or(UbjFault::Length(hash + 1))?;
                self.skip(bytes)
            }
            b'#' => {
                self.skip(1)?;
                let count = self.length()?;
                (0..count).try_for_each(|_| self.value(depth + 1))
            }
            _ => {
                while self.peek()? != b']' {
                    self.value(depth + 1)?;
                }
                self.skip(1)
            }
        }
    }
}

/// Bytes of a number.
fn fixed_size(marker: u8) -> Option<usize> {
    Some(match marker {
        b'i' | b'U' | b'C' => 1,
        b'I' => 2,
        b'l' | b'd' => 4,
        b'L' | b'D' => 8,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;
