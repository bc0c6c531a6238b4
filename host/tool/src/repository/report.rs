//! Findings of `trtserver check` as text and JSON.

use serde_json::{Value, json};
use std::fmt::Write;
use trtserver_models::lifecycle::{CheckFinding, FindingSeverity, RepositoryFindings};

/// One line for each finding, in the form of a compiler's messages, and a summary.
pub fn findings_text(found: &RepositoryFindings) -> String {
    let mut text = String::new();
    let for_models = found.models.values().flat_map(|model| &model.findings);
    for finding in found.findings.iter().chain(for_models) {
        let _ = write!(text, "{}", finding.file.display());
        if let Some((line, column)) = finding.position {
            let _ = write!(text, ":{line}:{column}");
        }
        // A message may hold the text of a file.
        let message = finding.message.replace('\n', " ");
        let _ = writeln!(text, ": {}: {message} [{}]", name(finding.severity), finding.kind);
    }
    let count = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let _ = writeln!(
        text,
        "{}: {}, {}",
        count(found.models.len(), "model"),
        count(found.count(FindingSeverity::Error), "error"),
        count(found.count(FindingSeverity::Warning), "warning")
    );
    text
}

pub fn findings_json(found: &RepositoryFindings) -> Result<String, String> {
    let models: Vec<Value> = found
        .models
        .values()
        .map(|model| {
            json!({
                "name": model.name, "directories": model.dirs,
                "findings": model.findings.iter().map(finding).collect::<Vec<_>>(),
            })
        })
        .collect();
    let document = json!({
        "errors": found.count(FindingSeverity::Error), "warnings": found.count(FindingSeverity::Warning),
        "findings": found.findings.iter().map(finding).collect::<Vec<_>>(), "models": models,
    });
    serde_json::to_string_pretty(&document).map(|text| text + "\n").map_err(|e| e.to_string())
}

fn finding(finding: &CheckFinding) -> Value {
    json!({
        "severity": name(finding.severity), "kind": finding.kind, "file": finding.file.to_string_lossy(),
        "line": finding.position.map(|(line, _)| line),
        "column": finding.position.map(|(_, column)| column), "message": finding.message,
    })
}

fn name(severity: FindingSeverity) -> &'static str {
    match severity {
        FindingSeverity::Error => "error",
        FindingSeverity::Warning => "warning",
    }
}
