//! Which part of `host/src` may use which: read from the table in ARCHITECTURE.md, so that page and check cannot differ.
//!
//! The table stands below the line `<!-- arrows -->`. A row is "| `part` | `used` `used` … | reason |". The row with the part
//! `*` lists what every part may use.

use crate::command::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const MARK: &str = "<!-- arrows -->";

/// Crates that a part must not name: the boundary of the protocols and of the async runtime.
const FOREIGN: &[(&str, &[&str])] = &[
    ("request", &["tokio", "hyper", "tonic", "serde_json"]),
    ("scheduler", &["tokio", "hyper", "tonic"]),
];

/// The allowed uses, by part.
pub struct Arrows(BTreeMap<String, BTreeSet<String>>);

impl Arrows {
    /// # Errors
    /// The page cannot be read, or it has no table.
    pub fn read(page: &Path) -> Result<Self> {
        let text = fs::read_to_string(page).map_err(|e| format!("{}: {e}", page.display()))?;
        Self::parse(&text).ok_or_else(|| format!("{}: no table below `{MARK}`", page.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut arrows = BTreeMap::new();
        for row in rows(text, MARK) {
            // The head of the table and the line below it quote nothing.
            if let Some(part) = quoted(row[0]).into_iter().next() {
                arrows.insert(part, quoted(row[1]));
            }
        }
        (!arrows.is_empty()).then_some(Self(arrows))
    }

    /// `inside` is the path below `host/src`.
    pub fn check(&self, inside: &Path, name: &str, text: &str, findings: &mut Vec<String>) {
        // Unit tests may use any part.
        if name.ends_with("_tests.rs") || name.ends_with("testing.rs") {
            return;
        }
        let part = inside.components().next().and_then(|c| c.as_os_str().to_str());
        let part = part.unwrap_or_default().trim_end_matches(".rs");
        if part == "lib" || part == "main" {
            return;
        }
        let Some(allowed) = self.0.get(part) else {
            findings.push(format!("{name}: ARCHITECTURE.md has no row for the part `{part}`"));
            return;
        };
        let code = || {
            let lines = text.lines().enumerate();
            lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
        };
        for (number, line) in code() {
            for used in line.split("crate::").skip(1).map(first_word) {
                let own = used == part || used.is_empty() || used.starts_with(char::is_uppercase);
                if !own && !allowed.contains(used) && !self.allowed_for_all(used) {
                    let number = number + 1;
                    findings.push(format!(
                        "{name}:{number}: `{part}` uses `{used}`, which ARCHITECTURE.md does not allow"
                    ));
                }
            }
            for foreign in FOREIGN.iter().filter(|(p, _)| *p == part).flat_map(|(_, f)| *f) {
                if line.contains(&format!("{foreign}::")) {
                    let number = number + 1;
                    findings.push(format!("{name}:{number}: `{part}` must not use `{foreign}`"));
                }
            }
        }
    }

    fn allowed_for_all(&self, part: &str) -> bool {
        self.0.get("*").is_some_and(|all| all.contains(part))
    }
}

/// The first two cells of the rows of the table below `mark`.
pub fn rows<'a>(text: &'a str, mark: &str) -> impl Iterator<Item = [&'a str; 2]> + use<'a> {
    let table = text.split_once(mark).map_or("", |(_, table)| table);
    let rows = table.lines().skip_while(|l| !l.starts_with('|')).take_while(|l| l.starts_with('|'));
    rows.filter_map(|row| {
        let mut cells = row.split('|').skip(1);
        Some([cells.next()?, cells.next()?])
    })
}

/// The words of a cell between backticks.
pub fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
#[path = "arrows_tests.rs"]
mod tests;
