//! The `--config` file: TOML with flag names as keys, written with dashes or underscores.
//!
//! Relative paths are relative to the working directory of the server, as on the command line.

use std::ffi::OsString;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::catalogue::{self, FlagKind, FlagSpec};
use super::{FlagOrigin, GivenFlag, GivenFlags, suggest_flag};

/// The flags that a file gives. The error names the file and the line.
pub fn read_config_file(path: &Path) -> Result<GivenFlags, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("{}: cannot read the configuration file: {e}", path.display()))?;
    parse_config_file(&text, path)
}

fn parse_config_file(text: &str, path: &Path) -> Result<GivenFlags, String> {
    let line = |offset: usize| 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
    let at = |line: usize, what: String| format!("{}:{line}: {what}", path.display());
    let table = DeTable::parse(text)
        .map_err(|e| at(e.span().map_or(1, |s| line(s.start)), e.message().to_owned()))?;
    let mut flags = GivenFlags::default();
    for (key, value) in table.get_ref() {
        let (name, line) = (key.get_ref().as_ref(), line(key.span().start));
        let flag = lookup_flag(name).ok_or_else(|| {
            let hint = suggest_flag(name, "").map(|h| format!(" {h}")).unwrap_or_default();
            at(line, format!("there is no flag named {name}.{hint}"))
        })?;
        if flag.name == "config" {
            return Err(at(line, "a configuration file cannot include another".to_owned()));
        }
        let values = flag_texts(flag, value)
            .ok_or_else(|| at(line, format!("{name} takes {}", expected_text(flag))))?;
        let origin = FlagOrigin::File { path: path.to_owned(), line };
        if let Some(GivenFlag { origin: FlagOrigin::File { line: other, .. }, .. }) =
            flags.get(flag.name)
        {
            let what =
                format!("{name} and line {} set the same flag, {}", line.min(*other), flag.name);
            return Err(at(line.max(*other), what));
        }
        flags.insert(flag, GivenFlag { values, origin });
    }
    Ok(flags)
}

fn lookup_flag(name: &str) -> Option<&'static FlagSpec> {
    catalogue::find_flag(name).or_else(|| catalogue::find_flag(&name.replace('_', "-")))
}

/// The value as it would be written on the command line; `None` if it is of the wrong type.
fn flag_texts(flag: &FlagSpec, value: &Spanned<DeValue<'_>>) -> Option<Vec<OsString>> {
    match value.get_ref() {
        DeValue::Array(list) if flag.repeatable => {
            list.iter().map(|v| single_text(flag.kind, v.get_ref())).collect()
        }
        value => Some(vec![single_text(flag.kind, value)?]),
    }
}

fn single_text(kind: FlagKind, value: &DeValue<'_>) -> Option<OsString> {
    let text = match (kind, value) {
        (FlagKind::Bool | FlagKind::Verbosity, DeValue::Boolean(b)) => b.to_string(),
        (
            FlagKind::Int { .. }
            | FlagKind::Count
            | FlagKind::Verbosity
            | FlagKind::Float
            | FlagKind::Size,
            DeValue::Integer(n),
        ) => i64::from_str_radix(n.as_str(), n.radix()).ok()?.to_string(),
        (FlagKind::Float, DeValue::Float(x)) => x.as_str().to_owned(),
        (
            FlagKind::Text(_) | FlagKind::Path(_) | FlagKind::Choice(_) | FlagKind::Size,
            DeValue::String(s),
        ) => s.to_string(),
        _ => return None,
    };
    Some(text.into())
}

fn expected_text(flag: &FlagSpec) -> String {
    let one = match flag.kind {
        FlagKind::Bool => "true or false, without quotes",
        FlagKind::Int { .. } | FlagKind::Count => "a whole number, without quotes",
        FlagKind::Verbosity => "a whole number or true or false, without quotes",
        FlagKind::Float => "a number, without quotes",
        FlagKind::Size => "a whole number, or a string such as \"512M\"",
        FlagKind::Text(_) | FlagKind::Path(_) | FlagKind::Choice(_) => "a string in quotes",
    };
    if flag.repeatable { format!("{one}, or a list of these") } else { one.to_owned() }
}

#[cfg(test)]
#[path = "config_file_tests.rs"]
mod tests;
