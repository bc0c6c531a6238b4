//! The tables of `docs/compatibility`, for unit tests that compare them with the flags, routes,
//! messages, fields and metrics of the server.

use std::fs;
use std::path::PathBuf;

/// The second column from the right of each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Works,
    Differs,
    NoEffect,
    NotDone,
}

/// A row of a table that has a column `state`.
#[derive(Debug)]
pub struct Row {
    /// File and line.
    pub place: String,
    pub state: State,
    /// Titles of the columns left of the state, and the words in backticks below them.
    names: Vec<(String, Vec<String>)>,
}

impl Row {
    /// The words in backticks below a title; none if the table has no such column.
    pub fn names(&self, title: &str) -> &[String] {
        self.names.iter().find(|(t, _)| t == title).map_or(&[], |(_, names)| names)
    }

    /// Whether the feature is there.
    pub fn is_there(&self) -> bool {
        matches!(self.state, State::Works | State::Differs)
    }
}

/// The folder `docs`.
fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The rows of a page of `docs/compatibility`. States other than `works` need a remark, and links a
/// file.
pub fn rows(page: &str) -> Vec<Row> {
    let folder = docs().join("compatibility");
    let text = fs::read_to_string(folder.join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
    let mut titles: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = format!("docs/compatibility/{page}:{}", number + 1);
        for link in line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            assert!(folder.join(link).exists(), "{place}: there is no {link}");
        }
        let Some(cells) = cells(line) else {
            titles.clear();
            continue;
        };
        if titles.is_empty() {
            titles = cells;
            continue;
        }
        let Some(column) = titles.iter().position(|title| *title == "state") else { continue };
        if cells[0].starts_with("---") {
            continue;
        }
        assert_eq!(cells.len(), titles.len(), "{place}: number of cells");
        let state = state(cells[column]).unwrap_or_else(|| panic!("{place}: {}", cells[column]));
        assert!(state == State::Works || !cells[column + 1].is_empty(), "{place}: give the reason");
        let names = titles.iter().zip(&cells).take(column);
        let names = names.map(|(title, cell)| ((*title).to_owned(), quoted(cell))).collect();
        rows.push(Row { place, state, names });
    }
    rows
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inside.split('|').map(str::trim).collect())
}

fn state(text: &str) -> Option<State> {
    Some(match text {
        "works" => State::Works,
        "differs" => State::Differs,
        "no effect" => State::NoEffect,
        "not done" => State::NotDone,
        _ => return None,
    })
}

/// The words in backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The text between two headings of a page of `docs/protocol`.
pub fn protocol(page: &str, from: &str, to: &str) -> String {
    let path = docs().join("protocol").join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("{page} has no {from}"));
    rest.split_once(to).unwrap_or_else(|| panic!("{page} has no {to}")).0.to_owned()
}
