//! `cargo xtask test --only tidy`: rules for the source tree that the compiler does not check.
//!
//! - Each Rust file begins with a line that says what it is for.
//! - Sources that authors of backends copy (headers, templates, examples) begin with an SPDX line.
//! - Files and functions that ARCHITECTURE.md and its neighbours name exist (`pages`).
//! - The host names no framework, except where a protocol page fixes the word (`frameworks`).
//! - Sections of `docs/protocol` that comments and pages cite exist (`citations`).
//! - Links of the pages lead somewhere, and each page is in the book's contents (`links`).
//! - Each declaration of the C interfaces has a comment (`docs/c_reference`).

mod citations;
mod frameworks;
pub mod links;
mod pages;

use crate::command::Result;
use crate::docs::c_reference;
use crate::paths::Paths;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders with sources and pages; `target` and what git ignores stay outside.
const FOLDERS: &[&str] = &[
    "host",
    "library-file",
    "model-files",
    "plugin-api",
    "plugins",
    "proto",
    "tests",
    "fuzz",
    "clients",
    "deploy",
    "benches",
    "examples",
    "xtask",
    "docs",
];

const SPDX: &str = "SPDX-License-Identifier: Apache-2.0";

/// Whether authors of backends copy the file into projects of their own.
fn is_copied(name: &str) -> bool {
    let folders = ["plugin-api/include/", "host/tool/src/templates/", "examples/backends/"];
    let sources = [".h", ".hpp", ".c", ".cpp", ".rs", ".py"];
    folders.iter().any(|folder| name.starts_with(folder))
        && sources.iter().any(|ending| name.ends_with(ending))
}

/// Checks the whole tree and lists every finding.
///
/// # Errors
/// The findings, one a line.
pub fn tidy(paths: &Paths) -> Result<()> {
    let mut findings = Vec::new();
    let protocol = citations::Protocol::read(&paths.root.join("docs/protocol"))?;
    let mut frameworks = frameworks::Frameworks::default();
    let pages = fs::read_dir(&paths.root).into_iter().flatten().flatten().map(|e| e.path());
    let folders = FOLDERS.iter().flat_map(|folder| files(&paths.root.join(folder)));
    for file in folders.chain(pages.filter(|p| p.is_file())) {
        // Binary files have no text to check.
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let name = paths.short(&file);
        let licensed = text.lines().next().is_some_and(|line| line.contains(SPDX));
        if !licensed && is_copied(&name) {
            findings.push(format!("{name}: the first line must contain `{SPDX}`"));
        }
        if file.extension().is_some_and(|e| e == "rs") {
            let text = match text.split_once('\n') {
                Some((_, rest)) if licensed => rest,
                _ => &text,
            };
            if !text.starts_with("//!") {
                findings.push(format!("{name}: the first line must say what the file is for"));
            }
        }
        links::check(&paths.root, &name, &text, &mut findings);
        frameworks.check(&name, &text, &mut findings);
        // Its own tests cite pages that do not exist.
        if !name.ends_with("citations_tests.rs") {
            protocol.check(&name, &text, &mut findings);
        }
    }
    frameworks.finish(&mut findings);
    c_reference::check(&paths.root, &mut findings);
    pages::check(&paths.root, &mut findings);
    // Those of the plugins are the references of the backends.
    let of_book =
        ["docs", "plugins"].into_iter().flat_map(|folder| files(&paths.root.join(folder)));
    let of_book = of_book.map(|file| paths.short(&file)).filter(|name| name.ends_with(".md"));
    let contents = fs::read_to_string(paths.root.join(links::SUMMARY)).unwrap_or_default();
    links::check_contents(&contents, &of_book.collect(), &mut findings);
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n  ")) }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                // Examples and fuzz targets are workspaces with build folders of their own.
                if entry.file_name() != "target" {
                    open.push(path);
                }
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
