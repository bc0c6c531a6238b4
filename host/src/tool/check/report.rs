//! Findings, by promise.

use super::findings::Line;
use super::promise::{PROMISES, Promise};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Default)]
pub struct Report {
    kept: BTreeMap<String, String>,
    broken: BTreeMap<String, Vec<String>>,
    not_applicable: BTreeMap<String, String>,
    seen: BTreeSet<String>,
}

/// The verdict on one promise.
struct Finding<'a> {
    promise: &'static Promise,
    state: &'static str,
    why: Vec<&'a str>,
}

impl Report {
    pub fn add(&mut self, line: &Line) {
        match line {
            Line::Kept { id, note } => drop(self.kept.insert(id.clone(), note.clone())),
            Line::Broken { id, why } => {
                let all = self.broken.entry(id.clone()).or_default();
                if !all.contains(why) && all.len() < 3 {
                    all.push(why.clone());
                }
            }
            Line::NotApplicable { id, why } => {
                self.not_applicable.insert(id.clone(), why.clone());
            }
            Line::Seen { id } => drop(self.seen.insert(id.clone())),
            Line::Begin { .. } | Line::At { .. } | Line::Done => {}
        }
    }

    /// Promises that are not kept.
    pub fn not_kept(&self) -> impl Iterator<Item = String> {
        self.broken.keys().chain(self.not_applicable.keys()).cloned()
    }

    /// Whether nothing but the file was checked.
    fn unusable(&self) -> bool {
        let tried = |id: &str| self.kept.contains_key(id) || self.broken.contains_key(id);
        self.broken.keys().any(|id| id.starts_with("file.")) && !tried("backend.open")
    }

    fn findings<'a>(&'a self, only: Option<&str>) -> Vec<Finding<'a>> {
        let chosen = PROMISES.iter().filter(|p| only.is_none_or(|only| only == p.id));
        let find = |promise: &'static Promise| {
            let note =
                |text: &'a String| if text.is_empty() { Vec::new() } else { vec![text.as_str()] };
            if let Some(all) = self.broken.get(promise.id) {
                let why = all.iter().map(String::as_str).collect();
                return Finding { promise, state: "broken", why };
            }
            if let Some(text) = self.kept.get(promise.id) {
                return Finding { promise, state: "kept", why: note(text) };
            }
            if promise.standing && self.seen.contains(promise.id) {
                return Finding { promise, state: "kept", why: Vec::new() };
            }
            let why = match self.not_applicable.get(promise.id) {
                Some(text) => note(text),
                None if promise.standing => vec!["not exercised"],
                None => vec!["not reached"],
            };
            Finding { promise, state: "not applicable", why }
        };
        chosen.map(find).collect()
    }

    /// The number of broken promises.
    pub fn broken(&self, only: Option<&str>) -> usize {
        let findings = self.findings(only);
        findings.iter().filter(|f| f.state == "broken").count()
    }

    pub fn json(&self, file: &Path, only: Option<&str>) -> Result<String, String> {
        let findings = self.findings(only);
        let count = |state: &str| findings.iter().filter(|f| f.state == state).count();
        let promises: Vec<_> = findings
            .iter()
            .map(|f| {
                json!({
                    "name": f.promise.id, "group": f.promise.group, "promise": f.promise.text,
                    "state": f.state, "why": f.why,
                })
            })
            .collect();
        let document = json!({
            "file": file, "kept": count("kept"), "broken": count("broken"),
            "not_applicable": count("not applicable"), "promises": promises,
        });
        serde_json::to_string_pretty(&document).map(|t| t + "\n").map_err(|e| e.to_string())
    }

    pub fn text(&self, file: &Path, only: Option<&str>) -> String {
        let findings = self.findings(only);
        let mut text = format!("{}\n", file.display());
        let mut group = "";
        let stuck = only.is_none() && self.unusable();
        for f in findings.iter().filter(|f| !stuck || f.promise.id.starts_with("file.")) {
            if group != f.promise.group {
                group = f.promise.group;
                text += &format!("\n{group}\n");
            }
            let mark = match f.state {
                "kept" => "kept   ",
                "broken" => "BROKEN ",
                _ => "n/a    ",
            };
            text += &format!("  {mark} {:<20} {}\n", f.promise.id, f.promise.text);
            for why in &f.why {
                text += &format!("{:31}{}\n", "", why.trim_end().replace('\n', " "));
            }
        }
        if stuck {
            text += "\nThe file cannot be used, so nothing else was checked.\n";
        }
        let count = |state: &str| findings.iter().filter(|f| f.state == state).count();
        let (kept, broken, rest) = (count("kept"), count("broken"), count("not applicable"));
        text + &format!("\n{kept} kept, {broken} broken, {rest} not applicable\n")
    }
}
