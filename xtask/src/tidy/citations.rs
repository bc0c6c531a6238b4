//! Citations of the protocol pages, "docs/protocol/v1.md §3.6" or "… trap 4": what they name must
//! exist.

use crate::command::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const FOLDER: &str = "docs/protocol/";

/// Sections and traps of the pages, by file name.
pub struct Protocol(BTreeMap<String, Page>);

#[derive(Default)]
struct Page {
    /// Numbers of headings, such as `3.6`.
    sections: BTreeSet<String>,
    /// Numbers of the items or rows in the section "Traps".
    traps: BTreeSet<String>,
}

impl Protocol {
    /// # Errors
    /// The folder cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut pages = BTreeMap::new();
        for entry in entries.flatten() {
            if let (Ok(name), Ok(text)) =
                (entry.file_name().into_string(), fs::read_to_string(entry.path()))
            {
                pages.insert(name, Page::parse(&text));
            }
        }
        Ok(Self(pages))
    }

    /// Finds citations in `text` that lead nowhere.
    pub fn check(&self, name: &str, text: &str, findings: &mut Vec<String>) {
        for (number, line) in text.lines().enumerate() {
            for rest in line.split(FOLDER).skip(1) {
                let Some((file, rest)) = rest.split_once(".md") else { continue };
                // Placeholders such as {v1,v2} cite no page.
                if !file.chars().all(|c| c.is_ascii_alphanumeric()) {
                    continue;
                }
                let file = format!("{file}.md");
                let mut miss = |what: String| {
                    findings.push(format!("{name}:{}: {FOLDER}{file} has no {what}", number + 1));
                };
                match self.0.get(&file) {
                    None => findings.push(format!("{name}:{}: no page {FOLDER}{file}", number + 1)),
                    Some(page) => page.check(rest, &mut miss),
                }
            }
        }
    }
}

impl Page {
    fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut in_traps = false;
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix('#') {
                let heading = heading.trim_start_matches('#').trim();
                let number = number(heading);
                in_traps = heading.contains("Traps");
                if !number.is_empty() {
                    page.sections.insert(number.to_owned());
                }
            } else if in_traps {
                // A list item ("4. Text") or a row of a table ("| 4 | Text |").
                let item = number(line.trim_start_matches("| "));
                if !item.is_empty() {
                    page.traps.insert(item.to_owned());
                }
            }
        }
        page
    }

    /// `rest` begins behind the page's name: any number of "§3.6", "§4.7–4.9" and "trap 4" in a
    /// row.
    fn check(&self, mut rest: &str, miss: &mut impl FnMut(String)) {
        loop {
            let text = rest.trim_start_matches([' ', ',', '–', '-']);
            let text = text.strip_prefix("and ").unwrap_or(text);
            let separated = text.len() < rest.len();
            let (kind, known, from) = if let Some(from) = text.strip_prefix('§') {
                ("section", &self.sections, from)
            } else if let Some(from) = text.strip_prefix("trap ").or(text.strip_prefix("traps ")) {
                ("trap", &self.traps, from)
            } else if separated
                && text.starts_with(|c: char| c.is_ascii_digit())
                && !number(text).is_empty()
                && rest.starts_with('–')
            {
                ("section", &self.sections, text)
            } else {
                return;
            };
            let number = number(from);
            if !known.contains(number) {
                miss(format!("{kind} {number}"));
            }
            rest = &from[number.len()..];
        }
    }
}

/// The leading number with dots inside: `3.6` of "3.6 Infer" and of "3.6.".
fn number(text: &str) -> &str {
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

#[cfg(test)]
#[path = "citations_tests.rs"]
mod tests;
