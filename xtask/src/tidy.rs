//! `cargo xtask test --only tidy`: the arrows between the host's parts, and a first line for every file.
//!
//! ARCHITECTURE.md states the arrows in words; this table is what holds them.

use crate::command::Result;
use crate::paths::Paths;
use std::fs;
use std::path::{Path, PathBuf};

/// A part of `host/src` and the other parts it must not name.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("net", &["plugin", "instance", "device"]),
    ("request", &["net", "repository", "scheduler", "plugin", "instance", "device", "config"]),
    ("repository", &["net", "metrics", "server"]),
    ("scheduler", &["net", "repository", "plugin", "instance", "device", "config"]),
    ("instance", &["net", "repository", "metrics", "server", "config"]),
    ("device", &["net", "repository", "scheduler", "plugin", "instance", "request"]),
    ("plugin", &["net", "scheduler", "instance", "metrics", "server"]),
    ("metrics", &["net", "scheduler", "instance", "server"]),
    ("stats", &["net", "repository", "scheduler", "plugin", "instance", "request"]),
    ("cli", &["net", "repository", "scheduler", "plugin", "instance", "request"]),
    ("config", &["net", "repository", "scheduler", "plugin", "instance", "request"]),
];

/// Words that a part must not contain at all.
const FOREIGN: &[(&str, &[&str])] = &[
    ("request", &["tokio", "hyper", "tonic", "serde_json"]),
    ("scheduler", &["tokio", "hyper", "tonic"]),
];

/// Checks every Rust file of the repository; all findings are listed.
pub fn tidy(paths: &Paths) -> Result<()> {
    let mut findings = Vec::new();
    for folder in ["host", "plugin-api", "plugins", "proto", "tests", "clients", "benches", "xtask"]
    {
        for file in rust_files(&paths.root.join(folder)) {
            let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            if !text.starts_with("//!") {
                findings.push(format!(
                    "{}: the first line must say what the file is for",
                    paths.short(&file)
                ));
            }
            arrows(paths, &file, &text, &mut findings);
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n  ")) }
}

fn arrows(paths: &Paths, file: &Path, text: &str, findings: &mut Vec<String>) {
    let Ok(inside) = file.strip_prefix(paths.root.join("host/src")) else { return };
    let part = inside.components().next().and_then(|c| c.as_os_str().to_str()).unwrap_or_default();
    let part = part.trim_end_matches(".rs");
    // Unit tests may use any part.
    if file.to_str().is_some_and(|f| f.ends_with("_tests.rs")) {
        return;
    }
    let lines = || text.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//"));
    let mut find = |table: &[(&str, &[&str])], spell: &dyn Fn(&str) -> String| {
        for (_, words) in table.iter().filter(|(p, _)| *p == part) {
            for word in *words {
                let needle = spell(word);
                for (number, _) in lines().filter(|(_, line)| line.contains(&needle)) {
                    let (file, line) = (paths.short(file), number + 1);
                    findings.push(format!("{file}:{line}: `{part}` must not know `{word}`"));
                }
            }
        }
    };
    find(FORBIDDEN, &|word| format!("crate::{word}::"));
    find(FOREIGN, &|word| format!("{word}::"));
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
