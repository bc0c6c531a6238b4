//! The `--config` file: TOML with flag names as keys, written with dashes or underscores.
//!
//! Relative paths are relative to the working directory of the server, as on the command line.

use std::ffi::OsString;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::catalogue::{self, Flag, Kind};
use super::{Flags, Given, Origin, suggestion};

/// The flags that a file gives. The error names the file and the line.
pub fn read(path: &Path) -> Result<Flags, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("{}: cannot read the configuration file: {e}", path.display()))?;
    parse(&text, path)
}

fn parse(text: &str, path: &Path) -> Result<Flags, String> {
    let line = |offset: usize| 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
    let at = |line: usize, what: String| format!("{}:{line}: {what}", path.display());
    let table = DeTable::parse(text)
        .map_err(|e| at(e.span().map_or(1, |s| line(s.start)), e.message().to_owned()))?;
    let mut flags = Flags::default();
    for (key, value) in table.get_ref() {
        let (name, line) = (key.get_ref().as_ref(), line(key.span().start));
        let flag = lookup(name).ok_or_else(|| {
            let hint = suggestion(name, "").map(|h| format!(" {h}")).unwrap_or_default();
            at(line, format!("there is no flag named {name}.{hint}"))
        })?;
        if flag.name == "config" {
            return Err(at(line, "a configuration file cannot include another".to_owned()));
        }
        let values = values(flag, value)
            .ok_or_else(|| at(line, format!("{name} takes {}", expected(flag))))?;
        let origin = Origin::File { path: path.to_owned(), line };
        if let Some(Given { origin: Origin::File { line: other, .. }, .. }) = flags.get(flag.name) {
            let what =
                format!("{name} and line {} set the same flag, {}", line.min(*other), flag.name);
            return Err(at(line.max(*other), what));
        }
        flags.insert(flag, Given { values, origin });
    }
    Ok(flags)
}

fn lookup(name: &str) -> Option<&'static Flag> {
    catalogue::find(name).or_else(|| catalogue::find(&name.replace('_', "-")))
}

/// The value as it would be written on the command line; `None` if it is of the wrong type.
fn values(flag: &Flag, value: &Spanned<DeValue<'_>>) -> Option<Vec<OsString>> {
    match value.get_ref() {
        DeValue::Array(list) if flag.repeatable => {
            list.iter().map(|v| single(flag.kind, v.get_ref())).collect()
        }
        value => Some(vec![single(flag.kind, value)?]),
    }
}

fn single(kind: Kind, value: &DeValue<'_>) -> Option<OsString> {
    let text = match (kind, value) {
        (Kind::Bool | Kind::Verbosity, DeValue::Boolean(b)) => b.to_string(),
        (
            Kind::Int { .. } | Kind::Count | Kind::Verbosity | Kind::Float | Kind::Size,
            DeValue::Integer(n),
        ) => i64::from_str_radix(n.as_str(), n.radix()).ok()?.to_string(),
        (Kind::Float, DeValue::Float(x)) => x.as_str().to_owned(),
        (Kind::Text(_) | Kind::Path(_) | Kind::Choice(_) | Kind::Size, DeValue::String(s)) => {
            s.to_string()
        }
        _ => return None,
    };
    Some(text.into())
}

fn expected(flag: &Flag) -> String {
    let one = match flag.kind {
        Kind::Bool => "true or false, without quotes",
        Kind::Int { .. } | Kind::Count => "a whole number, without quotes",
        Kind::Verbosity => "a whole number or true or false, without quotes",
        Kind::Float => "a number, without quotes",
        Kind::Size => "a whole number, or a string such as \"512M\"",
        Kind::Text(_) | Kind::Path(_) | Kind::Choice(_) => "a string in quotes",
    };
    if flag.repeatable { format!("{one}, or a list of these") } else { one.to_owned() }
}

#[cfg(test)]
#[path = "config_file_tests.rs"]
mod tests;
