//! The list of backends as table and JSON.

use super::entry::ListEntry;
use serde_json::json;
use std::path::{Path, PathBuf};

/// One JSON document with its newline.
pub fn json_list(
    dirs: &[PathBuf],
    entries: &[ListEntry],
    errors: &[String],
) -> Result<String, String> {
    let document = json!({ "directories": dirs, "backends": entries, "errors": errors });
    serde_json::to_string_pretty(&document).map(|text| text + "\n").map_err(|e| e.to_string())
}

/// A table; the problem and the warnings of a backend follow its row.
pub fn table_list(dirs: &[PathBuf], entries: &[ListEntry], errors: &[String]) -> String {
    let mut rows = vec![
        ["NAME", "VERSION", "ABI", "RUNTIME", "PLATFORMS", "ISOLATION", "FILE"].map(str::to_owned),
    ];
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    rows.extend(entries.iter().map(|e| {
        let platforms =
            if e.facts.platforms.is_empty() { "-".to_owned() } else { e.facts.platforms.join(",") };
        [
            e.name.clone(),
            or_dash(&e.facts.version),
            or_dash(&e.facts.abi),
            or_dash(&e.facts.runtime),
            platforms,
            or_dash(&e.isolation),
            match &e.adapter {
                Some(adapter) => format!("{} (through {adapter})", e.file.display()),
                None => e.file.display().to_string(),
            },
        ]
    }));
    let widths: Vec<usize> =
        (0..7).map(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line += &format!("{cell:<width$}  ");
        }
        text += line.trim_end();
        text.push('\n');
        let Some(entry) = at.checked_sub(1).map(|at| &entries[at]) else { continue };
        if let Some(problem) = &entry.problem {
            text += &format!("  cannot be used: {problem}\n");
        }
        for warning in &entry.warnings {
            text += &format!("  warning: {warning}\n");
        }
    }
    if entries.is_empty() {
        let quoted: Vec<String> = dirs.iter().map(|d| format!("'{}'", d.display())).collect();
        let searched = if quoted.is_empty() {
            "no directory (name one with --backend-dir)".to_owned()
        } else {
            quoted.join(", ")
        };
        text = format!("no backends in {searched}\n");
        if let Some(file) = dirs.iter().find_map(|dir| library(dir, 0)) {
            text += &format!(
                "  '{}' is not a plugin by its name: expected libtrtserver_NAME.so in the directory, in NAME/ or in \
                 NAME/VERSION/\n",
                file.display()
            );
        }
    }
    for error in errors {
        text += &format!("error: {error}\n");
    }
    text
}

/// A shared library where plugins are searched.
fn library(dir: &Path, depth: usize) -> Option<PathBuf> {
    std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).find_map(|path| {
        if path.is_dir() {
            return if depth < 2 { library(&path, depth + 1) } else { None };
        }
        path.extension().is_some_and(|e| e == "so").then_some(path)
    })
}
