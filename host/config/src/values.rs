//! Values of flags, read by the kind that the catalogue gives each flag.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::GivenFlags;
use crate::cli::catalogue::{self, FlagKind, FlagSpec};

/// One value.
#[derive(Clone, Debug, PartialEq)]
enum FlagValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Path(PathBuf),
}

/// The values of all flags, given or default, each of its flag's kind.
pub struct FlagValues(BTreeMap<&'static str, Vec<FlagValue>>);

impl FlagValues {
    /// Reads all flags that were given, including those without effect.
    ///
    /// # Errors
    /// The first value that is not of its flag's kind.
    pub fn read(flags: &GivenFlags) -> Result<FlagValues, String> {
        let mut values = BTreeMap::new();
        for flag in catalogue::all_flags() {
            let read = match flags.get(flag.name) {
                Some(given) => given
                    .values
                    .iter()
                    .map(|value| {
                        read_value(flag.kind, value).map_err(|e| {
                            format!("{}{}", given.origin, refuse_value(flag, value, &e))
                        })
                    })
                    .collect::<Result<Vec<_>, _>>()?,
                None if flag.default.is_empty() => Vec::new(),
                None => {
                    let value = OsStr::new(flag.default);
                    vec![read_value(flag.kind, value).map_err(|e| refuse_value(flag, value, &e))?]
                }
            };
            values.insert(flag.name, read);
        }
        Ok(FlagValues(values))
    }

    fn all(&self, name: &str) -> &[FlagValue] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn last(&self, name: &str) -> Result<&FlagValue, String> {
        self.all(name).last().ok_or_else(|| format!("--{name} has no value"))
    }

    pub fn bool(&self, name: &str) -> Result<bool, String> {
        match self.last(name)? {
            FlagValue::Bool(b) => Ok(*b),
            other => Err(format!("--{name} is not a boolean: {other:?}")),
        }
    }

    pub fn number<N: TryFrom<i64>>(&self, name: &str) -> Result<N, String> {
        self.optional_number(name)?.ok_or_else(|| format!("--{name} has no value"))
    }

    pub fn optional_number<N: TryFrom<i64>>(&self, name: &str) -> Result<Option<N>, String> {
        match self.all(name).last() {
            None => Ok(None),
            Some(FlagValue::Int(n)) => {
                N::try_from(*n).map(Some).map_err(|_| format!("--{name}={n} is too large"))
            }
            Some(other) => Err(format!("--{name} is not a number: {other:?}")),
        }
    }

    pub fn decimal(&self, name: &str) -> Result<f64, String> {
        match self.last(name)? {
            FlagValue::Float(x) => Ok(*x),
            other => Err(format!("--{name} is not a number: {other:?}")),
        }
    }

    pub fn milliseconds(&self, name: &str) -> Result<Duration, String> {
        match self.last(name)? {
            FlagValue::Float(ms) if *ms > 0.0 => Duration::try_from_secs_f64(ms / 1000.0)
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
        self.last(name).map(FlagValue::text)
    }

    /// All values as canonical text: `true` for `ON`, `7` for `+07`.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.all(name).iter().map(FlagValue::text).collect()
    }

    pub fn paths(&self, name: &str) -> Vec<PathBuf> {
        let path = |value: &FlagValue| match value {
            FlagValue::Path(path) => Some(path.clone()),
            _ => None,
        };
        self.all(name).iter().filter_map(path).collect()
    }
}

impl FlagValue {
    fn text(&self) -> String {
        match self {
            FlagValue::Bool(b) => b.to_string(),
            FlagValue::Int(n) => n.to_string(),
            FlagValue::Float(x) => x.to_string(),
            FlagValue::Text(text) => text.clone(),
            FlagValue::Path(path) => path.display().to_string(),
        }
    }
}

/// Reads one value; the error says what is expected.
fn read_value(kind: FlagKind, value: &OsStr) -> Result<FlagValue, String> {
    if let FlagKind::Path(_) = kind {
        return Ok(FlagValue::Path(PathBuf::from(value)));
    }
    let text = value.to_str().ok_or("text in UTF-8")?;
    let int = |min: i64, max: i64| {
        let n: i64 = text.parse().ok()?;
        (min..=max).contains(&n).then_some(n)
    };
    match kind {
        FlagKind::Bool => {
            parse_boolean(text).map(FlagValue::Bool).ok_or("true or false".to_owned())
        }
        FlagKind::Int { min, max } => int(min, max).map(FlagValue::Int).ok_or(match (min, max) {
            (i64::MIN, i64::MAX) => "a whole number".to_owned(),
            (_, i64::MAX) => format!("a whole number, at least {min}"),
            _ => format!("a whole number from {min} to {max}"),
        }),
        FlagKind::Count => int(i64::MIN, u32::MAX.into())
            .map(|n| FlagValue::Int(n.max(0)))
            .ok_or("a whole number".to_owned()),
        FlagKind::Verbosity => int(i64::MIN, u32::MAX.into())
            .map(|n| n.max(0))
            .or_else(|| parse_boolean(text).map(i64::from))
            .map(FlagValue::Int)
            .ok_or("a whole number, or true or false".to_owned()),
        FlagKind::Float => text
            .parse()
            .ok()
            .filter(|x: &f64| x.is_finite() && *x >= 0.0)
            .map(FlagValue::Float)
            .ok_or("a number, at least 0".to_owned()),
        FlagKind::Size => parse_size(text)
            .map(FlagValue::Int)
            .ok_or("a number of bytes, at least 1, such as 1000000 or 512M".to_owned()),
        FlagKind::Text(_) | FlagKind::Path(_) => Ok(FlagValue::Text(text.to_owned())),
        FlagKind::Choice(choices) => choices
            .iter()
            .find(|choice| choice.eq_ignore_ascii_case(text))
            .map(|choice| FlagValue::Text((*choice).to_owned()))
            .ok_or_else(|| format!("one of {}", choices.join(", "))),
    }
}

pub fn parse_size(text: &str) -> Option<i64> {
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

fn parse_boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" => Some(true),
        "false" | "0" | "off" => Some(false),
        _ => None,
    }
}

/// The first sentence is Triton's.
fn refuse_value(flag: &FlagSpec, value: &OsStr, expected: &str) -> String {
    let value = value.to_string_lossy();
    format!("Couldn't interpret value {value} for flag --{}. It takes {expected}.", flag.name)
}
