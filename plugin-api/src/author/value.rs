//! Parameters: named values of requests, responses, models and settings.

use super::error::Error;
use super::host::{as_bytes, as_text, with_str};
use crate::abi::types::{Param, Str, param};
use std::fmt;
use std::ptr;

/// The value of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
    /// UTF-8.
    Text(&'a str),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// Yes or no.
    Bool(bool),
    /// A floating-point number.
    Double(f64),
    /// Any bytes.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The value of [`Value::Text`].
    pub fn text(self) -> Option<&'a str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// An integer, or a text that spells one (model parameters and settings are always texts).
    pub fn to_i64(self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(n),
            Value::Uint(n) => i64::try_from(n).ok(),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A number, or a text that spells one.
    pub fn to_f64(self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(n as f64),
            Value::Uint(n) => Some(n as f64),
            Value::Double(x) => Some(x),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A truth value, an integer (zero is false), or `true`/`yes`/`on` or `false`/`no`/`off`.
    pub fn to_bool(self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(b),
            Value::Int(n) => Some(n != 0),
            Value::Uint(n) => Some(n != 0),
            Value::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(true),
                "false" | "0" | "no" | "off" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Calls `f` with this value as a parameter named `key`.
    pub(crate) fn with_param<R>(self, key: &str, f: impl FnOnce(&Param) -> R) -> R {
        let none = Str { p: ptr::null(), n: 0 };
        let (kind, bits) = match self {
            Value::Text(_) => (param::STRING, 0),
            Value::Bytes(_) => (param::BYTES, 0),
            Value::Int(n) => (param::INT, n as u64),
            Value::Uint(n) => (param::UINT, n),
            Value::Bool(b) => (param::BOOL, u64::from(b)),
            Value::Double(x) => (param::DOUBLE, x.to_bits()),
        };
        with_str(key, |key| match self {
            Value::Text(text) => with_str(text, |text| f(&Param { key, kind, pad: 0, text, bits })),
            Value::Bytes(b) => {
                let text = Str { p: b.as_ptr(), n: b.len() as u64 };
                f(&Param { key, kind, pad: 0, text, bits })
            }
            _ => f(&Param { key, kind, pad: 0, text: none, bits }),
        })
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => write!(f, "'{text}'"),
            Value::Int(n) => n.fmt(f),
            Value::Uint(n) => n.fmt(f),
            Value::Bool(b) => b.fmt(f),
            Value::Double(x) => x.fmt(f),
            Value::Bytes(b) => write!(f, "{} bytes", b.len()),
        }
    }
}

macro_rules! into_value {
    ($($from:ty, $x:ident => $value:expr;)*) => { $(
        impl<'a> From<$from> for Value<'a> {
            fn from($x: $from) -> Value<'a> { $value }
        }
    )* };
}

into_value! {
    &'a str, x => Value::Text(x);
    &'a [u8], x => Value::Bytes(x);
    i64, x => Value::Int(x);
    i32, x => Value::Int(x.into());
    u64, x => Value::Uint(x);
    u32, x => Value::Uint(x.into());
    bool, x => Value::Bool(x);
    f64, x => Value::Double(x);
}

/// A list of parameters, borrowed from the host.
#[derive(Clone, Copy)]
pub struct Params<'a>(&'a [Param]);

impl<'a> Params<'a> {
    /// # Safety
    /// The parameters and what they point at stay valid for `'a`.
    pub(crate) unsafe fn new(raw: &'a [Param]) -> Params<'a> {
        Params(raw)
    }

    /// Number of parameters.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Key and value of each; unknown kinds are skipped.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        // SAFETY: by the promise of `new`.
        self.0.iter().filter_map(|p| Some((unsafe { as_text(p.key) }, to_value(p)?)))
    }

    /// The value of a key.
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        // SAFETY: by the promise of `new`.
        let found = |p: &&Param| unsafe { as_bytes(p.key.p, p.key.n) } == key.as_bytes();
        self.0.iter().find(found).and_then(to_value)
    }

    /// The value of a key that is text.
    pub fn text(self, key: &str) -> Option<&'a str> {
        self.get(key)?.text()
    }

    /// The integer of that name, if present. Fails when the value is not an integer.
    pub fn integer(self, key: &str) -> Result<Option<i64>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let wrong = || {
            Error::invalid(format_args!("parameter '{key}' is {value}, which is not an integer"))
        };
        value.to_i64().map(Some).ok_or_else(wrong)
    }
}

fn to_value<'a>(p: &'a Param) -> Option<Value<'a>> {
    // SAFETY: it is part of a `Params`, so its text is valid for `'a`.
    unsafe {
        Some(match p.kind {
            param::STRING => Value::Text(as_text(p.text)),
            param::BYTES => Value::Bytes(as_bytes(p.text.p, p.text.n)),
            param::INT => Value::Int(p.bits as i64),
            param::UINT => Value::Uint(p.bits),
            param::BOOL => Value::Bool(p.bits != 0),
            param::DOUBLE => Value::Double(f64::from_bits(p.bits)),
            _ => return None,
        })
    }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
