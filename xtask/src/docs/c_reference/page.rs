//! Writes a header as a page of the book, in Markdown.

use super::header::{Declaration, DeclarationKind, Header, Item};
use super::{CPage, shown_name};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Where each name is described.
#[derive(Default)]
pub struct Names<'a> {
    places: BTreeMap<&'a str, (&'a str, String)>,
}

impl<'a> Names<'a> {
    pub fn collect(headers: impl Iterator<Item = (&'a str, &'a Header)>) -> Self {
        let mut names = Self::default();
        for (page, header) in headers {
            for declared in header.declarations() {
                let place = (page, anchor(declared));
                names.places.insert(&declared.name, place.clone());
                if declared.kind == DeclarationKind::Enumeration {
                    let constants = declared.members.iter().map(|member| member.name.as_str());
                    names.places.extend(constants.map(|constant| (constant, place.clone())));
                }
            }
        }
        names
    }

    /// The address of the description of a name, from a page of the reference.
    fn address(&self, name: &str, page: &str) -> Option<String> {
        let (place, anchor) = self.places.get(name)?;
        let file = if *place == page { String::new() } else { format!("{place}.md") };
        Some(format!("{file}#{anchor}"))
    }
}

/// As mdBook makes it from the heading.
fn anchor(declared: &Declaration) -> String {
    let name = shown_name(declared).replace(' ', "-");
    let kept = name.chars().filter(|c| c.is_alphanumeric() || "_-".contains(*c));
    kept.collect::<String>().to_lowercase()
}

pub fn write(page: &CPage, header: &Header, names: &Names) -> String {
    let mut out = format!("# {}\n\n", page.title);
    let prose = |text: &str| prose(text, page.name, names);
    let _ = writeln!(out, "`#include <{}>`\n", page.include());
    let _ = writeln!(out, "{}\n", prose(&header.introduction));
    for item in &header.items {
        match item {
            Item::Section(title) => {
                let _ = writeln!(out, "## {title}\n");
            }
            Item::Note(text) => {
                let _ = writeln!(out, "{}\n", prose(text));
            }
            Item::Declaration(declared) => {
                let _ = writeln!(out, "### `{}`\n", shown_name(declared));
                if !matches!(declared.kind, DeclarationKind::Struct | DeclarationKind::Enumeration)
                {
                    let _ = writeln!(out, "```c\n{}\n```\n", in_lines(&declared.code));
                }
                let _ = writeln!(out, "{}\n", prose(&declared.comment));
                for member in &declared.members {
                    // Continued paragraphs belong to the entry of the list.
                    let text = prose(&member.comment).replace("\n\n", "\n\n  ");
                    let colon = if text.is_empty() { "" } else { ": " };
                    let _ = writeln!(out, "- `{}`{colon}{text}", member.code);
                }
                out.push('\n');
            }
        }
    }
    out
}

/// Arguments that do not fit into a line are in lines of their own.
fn in_lines(code: &str) -> String {
    const WIDTH: usize = 90;
    if code.len() <= WIDTH || code.starts_with('#') {
        return code.to_owned();
    }
    let Some((before, arguments)) = code.rsplit_once('(') else { return code.to_owned() };
    let lines: Vec<&str> = arguments.trim_end_matches(')').split(", ").collect();
    format!("{before}(\n    {})", lines.join(",\n    "))
}

/// The text of a comment in Markdown: names of the interface become links, and nothing else has a
/// meaning but backticks.
fn prose(text: &str, page: &str, names: &Names) -> String {
    let mut out = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 1 {
            let _ = match names.address(part, page) {
                Some(address) => write!(out, "[`{part}`]({address})"),
                None => write!(out, "`{part}`"),
            };
            continue;
        }
        for word in words(part) {
            match names.address(word, page) {
                Some(address) => {
                    let _ = write!(out, "[`{word}`]({address})");
                }
                None if is_code(word) => {
                    let _ = write!(out, "`{word}`");
                }
                None => out.extend(word.chars().map(escaped)),
            }
        }
    }
    out
}

/// Names and what is between them, in turn.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let first = rest.chars().next()?;
        let end = rest.find(|c| is_name(c) != is_name(first)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

fn is_code(word: &str) -> bool {
    word.contains('_') && word.chars().any(char::is_alphanumeric)
}

fn escaped(c: char) -> String {
    match c {
        '<' => "&lt;".to_owned(),
        '*' | '[' | ']' | '\\' | '_' | '|' | '#' => format!("\\{c}"),
        _ => c.to_string(),
    }
}
