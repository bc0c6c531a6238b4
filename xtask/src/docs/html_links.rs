//! Links of the built book: each leads to a file, and to an element of it if it names one.

use crate::command::Result;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The references beside the book are checked by the tools that make them.
const REFERENCES: &str = "api";

/// # Errors
/// Every link that leads nowhere.
pub fn check(html: &Path) -> Result<()> {
    let mut pages = BTreeMap::new();
    collect(html, html, &mut pages);
    if pages.len() < 10 {
        return Err(format!("{} has {} pages", html.display(), pages.len()));
    }
    let mut findings = Vec::new();
    for (page, text) in pages.iter().filter(|(page, _)| !page.starts_with(REFERENCES)) {
        for target in targets(text) {
            if let Some(problem) = problem(html, &pages, page, &target) {
                findings.push(format!("{}: {problem}", page.display()));
            }
        }
    }
    findings.sort();
    findings.dedup();
    match findings.is_empty() {
        true => Ok(()),
        false => Err(format!("links of the book lead nowhere:\n  {}", findings.join("\n  "))),
    }
}

fn collect(top: &Path, folder: &Path, pages: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(top, &path, pages);
        } else if path.extension().is_some_and(|e| e == "html")
            && let (Ok(text), Ok(name)) = (fs::read_to_string(&path), path.strip_prefix(top))
        {
            pages.insert(name.to_path_buf(), text);
        }
    }
}

/// What a page links to and shows, without addresses of other hosts.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in [" href=\"", " src=\""] {
        for rest in text.split(attribute).skip(1) {
            let target = rest.split('"').next().unwrap_or_default();
            let is_address = target.starts_with("//") || target.contains(':');
            if !is_address && !target.is_empty() {
                found.push(target.replace("&amp;", "&"));
            }
        }
    }
    found
}

fn problem(
    html: &Path,
    pages: &BTreeMap<PathBuf, String>,
    page: &Path,
    target: &str,
) -> Option<String> {
    let (file, id) = target.split_once('#').map_or((target, ""), |(file, id)| (file, id));
    let file = file.split('?').next().unwrap_or_default();
    let place = match file {
        "" => page.to_path_buf(),
        file => crate::tidy::links::resolve(page, file)?,
    };
    if !html.join(&place).exists() {
        return Some(format!("no file '{file}'"));
    }
    let text = pages.get(&place).filter(|_| !id.is_empty())?;
    let named = [format!(" id=\"{id}\""), format!(" name=\"{id}\"")];
    let is_there = named.iter().any(|attribute| text.contains(attribute));
    (!is_there).then(|| format!("'{target}' names no element of {}", place.display()))
}

#[cfg(test)]
#[path = "html_links_tests.rs"]
mod tests;
