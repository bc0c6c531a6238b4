//! Links of the pages: every relative one leads to a file, and to a heading of it if it names one;
//! every page of `docs` is in its table of contents, `docs/SUMMARY.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The table of contents of the book.
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// A link of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct PageLink<'a> {
    /// Number of its line, from 1.
    pub line: usize,
    pub target: &'a str,
}

/// The links of a page outside of code. Addresses of other hosts are not among them.
pub fn relative_links(text: &str) -> Vec<PageLink<'_>> {
    let mut links = Vec::new();
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let mut rest = line;
        while let Some(start) = rest.find("](") {
            let before = &line[..line.len() - rest.len() + start];
            rest = &rest[start + 2..];
            let Some(end) = rest.find(')') else { break };
            let target = &rest[..end];
            let is_in_code = before.matches('`').count() % 2 == 1 && !before.ends_with('`');
            let is_address = target.contains("://") || target.starts_with("mailto:");
            if !is_in_code && !is_address && !target.contains(char::is_whitespace) {
                links.push(PageLink { line: number + 1, target });
            }
        }
    }
    links
}

/// The names of a page's headings in addresses, as GitHub and mdBook make them.
pub fn heading_ids(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if is_code || !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let id = heading_id(heading.trim());
        let before = seen.entry(id.clone()).and_modify(|count| *count += 1).or_insert(0);
        ids.insert(if *before == 0 { id } else { format!("{id}-{before}") });
    }
    ids
}

/// Lower case, without punctuation, spaces as hyphens. Of a link its text counts.
fn heading_id(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The place of a target beside the page that names it, from the root of the repository. `None`:
/// outside of it.
pub fn resolve(page: &Path, target: &str) -> Option<PathBuf> {
    let mut place: Vec<_> = page.parent()?.components().collect();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                place.pop()?;
            }
            Component::CurDir => {}
            other => place.push(other),
        }
    }
    Some(place.iter().collect())
}

/// Lists links of a page that lead nowhere. `name` is its path from `root`.
pub fn check(root: &Path, name: &str, text: &str, findings: &mut Vec<String>) {
    if !name.ends_with(".md") {
        return;
    }
    for PageLink { line, target } in relative_links(text) {
        if let Some(id) = target.strip_prefix('#') {
            if !heading_ids(text).contains(id) {
                findings.push(format!("{name}:{line}: '{target}' names no heading of this page"));
            }
            continue;
        }
        let (file, id) = target.split_once('#').map_or((target, None), |(f, id)| (f, Some(id)));
        let place = resolve(Path::new(name), file);
        let found = place.as_ref().map(|place| root.join(place)).filter(|place| place.exists());
        let Some(found) = found else {
            findings.push(format!("{name}:{line}: no file '{file}' beside this page"));
            continue;
        };
        let Some(id) = id.filter(|_| found.extension().is_some_and(|e| e == "md")) else {
            continue;
        };
        let headings = heading_ids(&fs::read_to_string(&found).unwrap_or_default());
        if !headings.contains(id) {
            findings.push(format!("{name}:{line}: '{target}' names no heading of that page"));
        }
    }
}

/// Lists pages that the table of contents does not have, or has twice. `pages` are paths from the
/// root.
pub fn check_contents(summary: &str, pages: &BTreeSet<String>, findings: &mut Vec<String>) {
    let mut listed = BTreeSet::new();
    for PageLink { line, target } in relative_links(summary) {
        if let Some(place) = resolve(Path::new(SUMMARY), target)
            && !listed.insert(place.display().to_string())
        {
            findings.push(format!("{SUMMARY}:{line}: '{target}' is listed twice"));
        }
    }
    for page in pages.iter().filter(|page| *page != SUMMARY && !listed.contains(*page)) {
        findings.push(format!("{SUMMARY}: {page} is not in the table of contents"));
    }
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
