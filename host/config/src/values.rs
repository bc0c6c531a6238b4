//! Values of flags, read by the kind that the catalogue gives each flag.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::Flags;
use crate::cli::catalogue::{self, Flag, Kind};

/// One value.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Path(PathBuf),
}

/// The values of all flags, given or default, each of its flag's kind.
pub struct Values(BTreeMap<&'static str, Vec<Value>>);

impl Values {
    /// Reads all flags that were given, including those without effect.
    ///
    /// # Errors
    /// The first value that is not of its flag's kind.
    pub fn read(flags: &Flags) -> Result<Values, String> {
        let mut values = BTreeMap::new();
        for flag in catalogue::all() {
            let read = match flags.get(flag.name) {
                Some(given) => given
                    .values
                    .iter()
                    .map(|value| {
                        read(flag.kind, value)
                            .map_err(|e| format!("{}{}", given.origin, refusal(flag, value, &e)))
                    })
                    .collect::<Result<Vec<_>, _>>()?,
                None if flag.default.is_empty() => Vec::new(),
                None => {
                    let value = OsStr::new(flag.default);
                    vec![read(flag.kind, value).map_err(|e| refusal(flag, value, &e))?]
                }
            };
            values.insert(flag.name, read);
        }
        Ok(Values(values))
    }

    fn all(&self, name: &str) -> &[Value] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn last(&self, name: &str) -> Result<&Value, String> {
        self.all(name).last().ok_or_else(|| format!("--{name} has no value"))
    }

    pub fn bool(&self, name: &str) -> Result<bool, String> {
        match self.last(name)? {
            Value::Bool(b) => Ok(*b),
            other => Err(format!("--{name} is not a boolean: {other:?}")),
        }
    }

    pub fn number<N: TryFrom<i64>>(&self, name: &str) -> Result<N, String> {
        self.optional_number(name)?.ok_or_else(|| format!("--{name} has no value"))
    }

    pub fn optional_number<N: TryFrom<i64>>(&self, name: &str) -> Result<Option<N>, String> {
        match self.all(name).last() {
            None => Ok(None),
            Some(Value::Int(n)) => {
                N::try_from(*n).map(Some).map_err(|_| format!("--{name}={n} is too large"))
            }
            Some(other) => Err(format!("--{name} is not a number: {other:?}")),
        }
    }

    pub fn decimal(&self, name: &str) -> Result<f64, String> {
        match self.last(name)? {
            Value::Float(x) => Ok(*x),
            other => Err(format!("--{name} is not a number: {other:?}")),
        }
    }

    pub fn milliseconds(&self, name: &str) -> Result<Duration, String> {
        match self.last(name)? {
            Value::Float(ms) if *ms > 0.0 => Duration::try_from_secs_f64(ms / 1000.0)
                .map_err(|_| format!("--{name}={ms} is too large")),
            other => Err(format!("--{name}={} must be more than 0", other.text())),
        }
    }

    /// A time in seconds, which may be a fraction.
    pub fn decimal_seconds(&self, name: &str) -> Result<Duration, String> {
        let seconds = self.decimal(name)?;
        Duration::try_from_secs_f64(seconds).map_err(|_| format!("--{name}={seconds} is too large"))
    }

    /// A time limit in seconds; `None` for 0, which switches it off.
    pub fn seconds(&self, name: &str) -> Result<Option<Duration>, String> {
        let seconds: u64 = self.number(name)?;
        Ok(Some(Duration::from_secs(seconds)).filter(|limit| !limit.is_zero()))
    }

    /// A time limit in milliseconds; `None` for 0, which switches it off, and without a value.
    pub fn optional_millis(&self, name: &str) -> Result<Option<Duration>, String> {
        let millis: Option<u64> = self.optional_number(name)?;
        Ok(millis.map(Duration::from_millis).filter(|limit| !limit.is_zero()))
    }

    pub fn text(&self, name: &str) -> Result<String, String> {
        self.last(name).map(Value::text)
    }

    /// All values as canonical text: `true` for `ON`, `7` for `+07`.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.all(name).iter().map(Value::text).collect()
    }

    pub fn paths(&self, name: &str) -> Vec<PathBuf> {
        let path = |value: &Value| match value {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        };
        self.all(name).iter().filter_map(path).collect()
    }
}

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Bool(b) => b.to_string(),
            Value::Int(n) => n.to_string(),
            Value::Float(x) => x.to_string(),
            Value::Text(text) => text.clone(),
            Value::Path(path) => path.display().to_string(),
        }
    }
}

/// Reads one value; the error says what is expected.
fn read(kind: Kind, value: &OsStr) -> Result<Value, String> {
    if let Kind::Path(_) = kind {
        return Ok(Value::Path(PathBuf::from(value)));
    }
    let text = value.to_str().ok_or("text in UTF-8")?;
    let int = |min: i64, max: i64| {
        let n: i64 = text.parse().ok()?;
        (min..=max).contains(&n).then_some(n)
    };
    match kind {
        Kind::Bool => boolean(text).map(Value::Bool).ok_or("true or false".to_owned()),
        Kind::Int { min, max } => int(min, max).map(Value::Int).ok_or(match (min, max) {
            (i64::MIN, i64::MAX) => "a whole number".to_owned(),
            (_, i64::MAX) => format!("a whole number, at least {min}"),
            _ => format!("a whole number from {min} to {max}"),
        }),
        Kind::Count => int(i64::MIN, u32::MAX.into())
            .map(|n| Value::Int(n.max(0)))
            .ok_or("a whole number".to_owned()),
        Kind::Verbosity => int(i64::MIN, u32::MAX.into())
            .map(|n| n.max(0))
            .or_else(|| boolean(text).map(i64::from))
            .map(Value::Int)
            .ok_or("a whole number, or true or false".to_owned()),
        Kind::Float => text
            .parse()
            .ok()
            .filter(|x: &f64| x.is_finite() && *x >= 0.0)
            .map(Value::Float)
            .ok_or("a number, at least 0".to_owned()),
        Kind::Size => size(text)
            .map(Value::Int)
            .ok_or("a number of bytes, at least 1, such as 1000000 or 512M".to_owned()),
        Kind::Text(_) | Kind::Path(_) => Ok(Value::Text(text.to_owned())),
        Kind::Choice(choices) => choices
            .iter()
            .find(|choice| choice.eq_ignore_ascii_case(text))
            .map(|choice| Value::Text((*choice).to_owned()))
            .ok_or_else(|| format!("one of {}", choices.join(", "))),
    }
}

fn size(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return None,
    };
    let n: i64 = digits.parse().ok()?;
    n.checked_mul(1 << shift).filter(|n| *n > 0)
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" => Some(true),
        "false" | "0" | "off" => Some(false),
        _ => None,
    }
}

/// The first sentence is Triton's.
fn refusal(flag: &Flag, value: &OsStr, expected: &str) -> String {
    let value = value.to_string_lossy();
    format!("Couldn't interpret value {value} for flag --{}. It takes {expected}.", flag.name)
}
