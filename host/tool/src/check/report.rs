//! Findings, by promise.

use super::findings::FindingLine;
use super::promise::{PROMISES, Promise};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The promise about ordinary requests.
const REQUEST: &str = "request.single";
/// The verdicts.
const STATES: [&str; 5] = ["kept", "broken", "warning", "untested", "not applicable"];

#[derive(Default)]
pub struct Report {
    kept: BTreeMap<String, String>,
    broken: BTreeMap<String, Vec<String>>,
    /// Texts by promise, as for the next.
    warnings: BTreeMap<String, String>,
    untested: BTreeMap<String, String>,
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
    pub fn add(&mut self, line: &FindingLine) {
        match line {
            FindingLine::Kept { id, note } => drop(self.kept.insert(id.clone(), note.clone())),
            FindingLine::Broken { id, why } => {
                let all = self.broken.entry(id.clone()).or_default();
                if !all.contains(why) && all.len() < 3 {
                    all.push(why.clone());
                }
            }
            FindingLine::Warning { id, why } => drop(self.warnings.insert(id.clone(), why.clone())),
            FindingLine::Untested { id, why } => {
                drop(self.untested.insert(id.clone(), why.clone()))
            }
            FindingLine::NotApplicable { id, why } => {
                self.not_applicable.insert(id.clone(), why.clone());
            }
            FindingLine::Seen { id } => drop(self.seen.insert(id.clone())),
            FindingLine::Begin { .. }
            | FindingLine::At { .. }
            | FindingLine::Case { .. }
            | FindingLine::Done => {}
        }
    }

    /// Promises that are not kept.
    pub fn not_kept(&self) -> impl Iterator<Item = String> {
        self.broken.keys().chain(self.untested.keys()).chain(self.not_applicable.keys()).cloned()
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
            for (state, texts) in [
                ("warning", &self.warnings),
                ("untested", &self.untested),
                ("not applicable", &self.not_applicable),
            ] {
                if let Some(text) = texts.get(promise.id) {
                    return Finding { promise, state, why: note(text) };
                }
            }
            // Nothing exercises a standing promise if the backend does nothing that it is about, or
            // if no request ran.
            let tried = self.kept.contains_key(REQUEST) || self.broken.contains_key(REQUEST);
            match promise.standing {
                true if tried => {
                    Finding { promise, state: "not applicable", why: vec!["not exercised"] }
                }
                true => Finding { promise, state: "untested", why: vec!["not exercised"] },
                false => Finding { promise, state: "untested", why: vec!["not reached"] },
            }
        };
        chosen.map(find).collect()
    }

    /// 0 = no promise is broken, 1 = one is, 3 = none is, but no request could be tried.
    pub fn exit_status(&self, only: Option<&str>) -> u8 {
        let findings = self.findings(only);
        let needed = only.unwrap_or(REQUEST);
        let untested = |f: &Finding<'_>| f.promise.id == needed && f.state == "untested";
        match findings.iter().any(|f| f.state == "broken") {
            true => 1,
            false if findings.iter().any(untested) => 3,
            false => 0,
        }
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
            "warnings": count("warning"), "untested": count("untested"),
            "not_applicable": count("not applicable"), "promises": promises,
        });
        serde_json::to_string_pretty(&document).map(|t| t + "\n").map_err(|e| e.to_string())
    }

    pub fn text(&self, file: &Path, only: Option<&str>) -> String {
        let findings = self.findings(only);
        let mut text = format!("{}\n", file.display());
        let (mut group, mut before) = ("", Vec::new());
        let stuck = only.is_none() && self.unusable();
        for f in findings.iter().filter(|f| !stuck || f.promise.id.starts_with("file.")) {
            if group != f.promise.group {
                group = f.promise.group;
                text += &format!("\n{group}\n");
            }
            let mark = match f.state {
                "broken" => "BROKEN",
                "not applicable" => "n/a",
                state => state,
            };
            text += &format!("  {mark:<8} {:<20} {}\n", f.promise.id, f.promise.text);
            // One missing step leaves many promises untested for the same reason.
            let repeated = f.state == "untested" && f.why == before;
            for why in f.why.iter().filter(|_| !repeated) {
                text += &format!("{:32}{}\n", "", why.trim_end().replace('\n', " "));
            }
            before.clone_from(&f.why);
        }
        if stuck {
            text += "\nThe file cannot be used, so nothing else was checked.\n";
        }
        let count = |state: &str| findings.iter().filter(|f| f.state == state).count();
        let counts: Vec<String> =
            STATES.iter().map(|state| format!("{} {state}", count(state))).collect();
        text + &format!("\n{}\n", counts.join(", "))
    }
}
