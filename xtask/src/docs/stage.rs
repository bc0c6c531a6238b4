//! The source of the book: the pages that the table of contents lists, in folders as in the
//! repository, so that their links stay as they are. Links to what is not in the book lose their
//! address.

use crate::command::Result;
use crate::tidy::links::{SUMMARY, relative_links, resolve};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const BOOK: &str = "docs/book.toml";
/// The page that lists the references.
const REFERENCE: &str = "docs/api-reference.md";
const PICTURES: [&str; 2] = ["svg", "png"];

/// Pages that are not in `docs/`, and what is built beside the book.
pub struct References {
    pub pages: Vec<SourcePage>,
    /// Names and addresses from the top of the book.
    pub beside: Vec<(String, String)>,
}

/// A page that is made from sources.
pub struct SourcePage {
    pub title: String,
    /// From the top of the book.
    pub file: String,
    /// Markdown.
    pub text: String,
}

/// Writes the source of the book below `into`.
pub fn stage(root: &Path, into: &Path, references: &References) -> Result<()> {
    crate::python::remove_dir(into)?;
    let source = into.join("src");
    let summary = read(&root.join(SUMMARY))?;
    let listed: BTreeSet<PathBuf> = relative_links(&summary)
        .iter()
        .filter_map(|link| resolve(Path::new(SUMMARY), link.target))
        .collect();
    for page in &listed {
        let text = read(&root.join(page))?;
        let mut pictures = BTreeSet::new();
        let text = keep_links(&text, |target| {
            let file = target.split('#').next().unwrap_or_default();
            let place = match file {
                "" => return true,
                file => resolve(page, file),
            };
            let Some(place) = place else { return false };
            let is_picture =
                place.extension().is_some_and(|e| PICTURES.iter().any(|picture| e == *picture));
            if is_picture {
                pictures.insert(place.clone());
            }
            is_picture || listed.contains(&place)
        });
        write(&source.join(page), &text)?;
        for picture in pictures {
            copy(&root.join(&picture), &source.join(&picture))?;
        }
    }
    let mut contents = from_top(&summary);
    contents.push_str(&format!("\n- [API reference]({REFERENCE})\n"));
    for page in &references.pages {
        contents.push_str(&format!("  - [{}]({})\n", page.title, page.file));
        write(&source.join(&page.file), &page.text)?;
    }
    write(&source.join(REFERENCE), &reference_page(references))?;
    write(&source.join("SUMMARY.md"), &contents)?;
    copy(&root.join(BOOK), &into.join("book.toml"))
}

fn reference_page(references: &References) -> String {
    let pages = references.pages.iter().map(|page| (&page.title, &page.file));
    let beside = references.beside.iter().map(|(name, address)| (name, address));
    let lines = pages.chain(beside).map(|(name, address)| format!("- [{name}](../{address})\n"));
    let lines: String = lines.collect();
    format!("# API reference\n\nMade of the comments in the sources:\n\n{lines}")
}

/// The table of contents with paths from the root of the repository.
fn from_top(summary: &str) -> String {
    let mut out = String::new();
    let mut done = 0;
    for link in relative_links(summary) {
        let start = link.target.as_ptr() as usize - summary.as_ptr() as usize;
        out.push_str(&summary[done..start]);
        let place = resolve(Path::new(SUMMARY), link.target);
        out.push_str(&place.map_or_else(String::new, |place| place.display().to_string()));
        done = start + link.target.len();
    }
    out.push_str(&summary[done..]);
    out
}

/// The page, in which a link that `keep` refuses is its text alone.
fn keep_links(text: &str, mut keep: impl FnMut(&str) -> bool) -> String {
    let mut out = String::new();
    let mut done = 0;
    for link in relative_links(text) {
        if keep(link.target) {
            continue;
        }
        // At `](`.
        let end = link.target.as_ptr() as usize - text.as_ptr() as usize - 2;
        let Some(start) = text[done..end].rfind('[') else { continue };
        out.push_str(&text[done..done + start]);
        out.push_str(&text[done + start + 1..end]);
        done = end + 2 + link.target.len() + 1;
    }
    out.push_str(&text[done..]);
    out
}

/// Copies a folder with what is below it.
pub fn copy_tree(from: &Path, into: &Path) -> Result<()> {
    let entries = fs::read_dir(from).map_err(|e| format!("cannot list {}: {e}", from.display()))?;
    for entry in entries.flatten() {
        let place = into.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_tree(&entry.path(), &place)?,
            false => copy(&entry.path(), &place)?,
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|e| format!("cannot read {}: {e}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    create_folder(file)?;
    fs::write(file, text).map_err(|e| format!("cannot write {}: {e}", file.display()))
}

fn copy(from: &Path, into: &Path) -> Result<()> {
    create_folder(into)?;
    let copied = fs::copy(from, into).map(drop);
    copied.map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), into.display()))
}

fn create_folder(file: &Path) -> Result<()> {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder).map_err(|e| format!("cannot create {}: {e}", folder.display()))
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
