//! Lines of the log and changes of the repository as JSON.

use serde::Serialize;
use trtserver_base::error::{Error, Result};
use trtserver_config::log::{LineLevel, RecentLines};
use trtserver_models::RepositoryChanges;

/// Which entries a query asks for: `after=NUMBER&level=LEVEL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryQuery {
    /// Those with a higher number.
    pub after: u64,
    /// Lines that are at least as important.
    pub level: LineLevel,
}

impl EntryQuery {
    /// Both may be left out.
    ///
    /// # Errors
    /// A key or a value is unknown.
    pub fn parse(query: Option<&str>) -> Result<Self> {
        let mut parsed = Self { after: 0, level: LineLevel::Verbose };
        let pairs = query.into_iter().flat_map(|query| query.split('&'));
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "after" => {
                    parsed.after = value.parse().map_err(|_| {
                        Error::invalid(format!("query 'after': expected a number, found '{value}'"))
                    })?;
                }
                "level" => {
                    let found = LineLevel::ALL.into_iter().find(|level| level.name() == value);
                    parsed.level = found.ok_or_else(|| {
                        Error::invalid(format!(
                            "query 'level': expected error, warning, info or verbose, found '{value}'"
                        ))
                    })?;
                }
                _ => {
                    return Err(Error::invalid(format!(
                        "unknown key '{key}' in the query: expected 'after' or 'level'"
                    )));
                }
            }
        }
        Ok(parsed)
    }
}

#[derive(Serialize)]
struct LinesReport<'a> {
    last: u64,
    lines: Vec<LineReport<'a>>,
}

#[derive(Serialize)]
struct LineReport<'a> {
    number: u64,
    unix_ms: u64,
    level: &'static str,
    place: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct ChangesReport<'a> {
    last: u64,
    changes: Vec<ChangeReport<'a>>,
}

#[derive(Serialize)]
struct ChangeReport<'a> {
    number: u64,
    unix_ms: u64,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    change: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
}

/// The last lines of the log.
///
/// # Errors
/// None are kept.
pub fn lines_json(lines: &RecentLines, query: EntryQuery) -> Result<Vec<u8>> {
    if !lines.is_enabled() {
        return Err(Error::not_found(
            "no lines of the log are kept: the server runs with --ui=off".to_owned(),
        ));
    }
    let (found, last) = lines.after(query.after, query.level);
    let lines = found.iter().map(|line| LineReport {
        number: line.number,
        unix_ms: line.unix_ms,
        level: line.level.name(),
        place: &line.place,
        text: &line.text,
    });
    write_json(&LinesReport { last, lines: lines.collect() })
}

/// The last changes of the repository.
///
/// # Errors
/// They cannot be written, which does not happen.
pub fn changes_json(changes: &RepositoryChanges, query: EntryQuery) -> Result<Vec<u8>> {
    let (found, last) = changes.after(query.after);
    let changes = found.iter().map(|change| ChangeReport {
        number: change.number,
        unix_ms: change.unix_ms,
        model: &change.model,
        version: change.version.map(|version| version.to_string()),
        change: change.kind.name(),
        text: &change.text,
    });
    write_json(&ChangesReport { last, changes: changes.collect() })
}

/// The report as JSON.
pub(crate) fn write_json(report: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(report).map_err(|e| Error::internal(format!("writing JSON failed: {e}")))
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
