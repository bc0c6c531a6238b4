//! Typed words read as values, by the kind the catalogue gives each flag.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::Typed;
use crate::cli::catalogue::{self, Flag, Kind};

/// One value, read.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Path(PathBuf),
}

/// The values of all flags, given or default, each known to be of its kind.
pub struct Values(BTreeMap<&'static str, Vec<Value>>);

impl Values {
    /// Reads everything given, the flags that have no effect included; complains of the first that
    /// cannot be read.
    pub fn check(typed: &Typed) -> Result<Values, String> {
        let mut values = BTreeMap::new();
        for flag in catalogue::all() {
            let read = match typed.get(flag.name) {
                Some(given) => given
                    .values
                    .iter()
                    .map(|word| {
                        read(flag.kind, word)
                            .map_err(|why| format!("{}{}", given.origin, refusal(flag, word, &why)))
                    })
                    .collect::<Result<Vec<_>, _>>()?,
                None if flag.default.is_empty() => Vec::new(),
                None => {
                    let word = OsStr::new(flag.default);
                    vec![read(flag.kind, word).map_err(|why| refusal(flag, word, &why))?]
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
            other => Err(format!("--{name} is not a switch: {other:?}")),
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

    pub fn milliseconds(&self, name: &str) -> Result<Duration, String> {
        match self.last(name)? {
            Value::Float(ms) if *ms > 0.0 => Duration::try_from_secs_f64(ms / 1000.0)
                .map_err(|_| format!("--{name}={ms} is too large")),
            other => Err(format!("--{name}={} must be more than 0", other.text())),
        }
    }

    pub fn text(&self, name: &str) -> Result<String, String> {
        self.last(name).map(Value::text)
    }

    /// All values as normalised text: true, not ON; 7, not +07.
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

/// Reads one word; the error says what would have been right.
fn read(kind: Kind, word: &OsStr) -> Result<Value, String> {
    if let Kind::Path(_) = kind {
        return Ok(Value::Path(PathBuf::from(word)));
    }
    let text = word.to_str().ok_or("text in UTF-8")?;
    let int = |min: i64, max: i64| {
        let n: i64 = text.parse().ok()?;
        (min..=max).contains(&n).then_some(n)
    };
    match kind {
        Kind::Bool => truth(text).map(Value::Bool).ok_or("true or false".to_owned()),
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
            .or_else(|| truth(text).map(i64::from))
            .map(Value::Int)
            .ok_or("a whole number, or true or false".to_owned()),
        Kind::Float => text
            .parse()
            .ok()
            .filter(|x: &f64| x.is_finite() && *x >= 0.0)
            .map(Value::Float)
            .ok_or("a number, at least 0".to_owned()),
        Kind::Text(_) | Kind::Path(_) => Ok(Value::Text(text.to_owned())),
        Kind::Choice(choices) => choices
            .iter()
            .find(|choice| choice.eq_ignore_ascii_case(text))
            .map(|choice| Value::Text((*choice).to_owned()))
            .ok_or_else(|| format!("one of {}", choices.join(", "))),
    }
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" => Some(true),
        "false" | "0" | "off" => Some(false),
        _ => None,
    }
}

/// The first sentence is that of the original server.
fn refusal(flag: &Flag, word: &OsStr, expected: &str) -> String {
    let word = word.to_string_lossy();
    format!("Couldn't interpret value {word} for flag --{}. It takes {expected}.", flag.name)
}
