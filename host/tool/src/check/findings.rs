//! Messages of `plugin check`: the task of the child process, and the findings that it sends.

use crate::subprocess::ReportPipe;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::OnceLock;
use trtserver_plugin_testkit::Violation;

/// What the child does.
#[derive(Clone, Serialize, Deserialize)]
pub struct Task {
    pub file: PathBuf,
    pub model: Option<PathBuf>,
    pub settings: BTreeMap<String, String>,
    /// An empty directory for models of the check.
    pub scratch: PathBuf,
    /// Seconds for one scenario.
    pub limit: f64,
    /// Scenarios to skip: done before, or not requested.
    pub skip: BTreeSet<String>,
    /// Failed scenarios, which others may need.
    pub failed: BTreeSet<String>,
}

/// A line of the report.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum FindingLine {
    Begin {
        id: String,
    },
    /// A crash from here on is a finding of this scenario.
    At {
        id: String,
    },
    /// Describes the requests that are executed from here on.
    Case {
        text: String,
    },
    Kept {
        id: String,
        note: String,
    },
    Broken {
        id: String,
        why: String,
    },
    Warning {
        id: String,
        why: String,
    },
    Untested {
        id: String,
        why: String,
    },
    NotApplicable {
        id: String,
        why: String,
    },
    /// A standing promise was exercised.
    Seen {
        id: String,
    },
    Done,
}

/// Process-wide: the functions of the test host, which the backend calls, report here.
static FINDINGS: Findings = Findings {
    pipe: OnceLock::new(),
    seen: Mutex::new(BTreeSet::new()),
    violations: Mutex::new(BTreeSet::new()),
    breaches: Mutex::new(BTreeMap::new()),
    now: Mutex::new((String::new(), String::new())),
};

/// What the child of a check has found.
struct Findings {
    pipe: OnceLock<ReportPipe>,
    seen: Mutex<BTreeSet<&'static str>>,
    violations: Mutex<BTreeSet<(&'static str, String)>>,
    breaches: Mutex<BTreeMap<&'static str, BTreeSet<String>>>,
    /// The scenario that runs, and the requests that it executes.
    now: Mutex<(String, String)>,
}

/// Sends all findings through `pipe`.
pub fn report_to(pipe: ReportPipe) {
    let _ = FINDINGS.pipe.set(pipe);
}

/// Reported violations of one promise, at most.
const MAX_REPORTED: usize = 3;

pub fn send_line(line: &FindingLine) {
    if let Some(pipe) = FINDINGS.pipe.get() {
        pipe.send(line);
    }
}

pub fn begin_scenario(id: &str) {
    if let Some(pipe) = FINDINGS.pipe.get() {
        // What was printed before explains no crash from here on.
        pipe.mark_output();
    }
    *FINDINGS.now.lock() = (id.to_owned(), String::new());
    send_line(&FindingLine::Begin { id: id.to_owned() });
}

/// Describes the requests that are executed from here on, for reports of violations and crashes.
pub fn begin_case(text: &str) {
    let mut now = FINDINGS.now.lock();
    if now.1 != text {
        now.1 = text.to_owned();
        send_line(&FindingLine::Case { text: text.to_owned() });
    }
}

/// A violation that the test host detected. Reported with the case in which it was first seen.
pub fn report_violation(violation: &Violation) {
    if FINDINGS.violations.lock().insert((violation.promise, violation.text.clone())) {
        let (scenario, case) = FINDINGS.now.lock().clone();
        let with = if case.is_empty() { case } else { format!(", with {case}") };
        report_breach(violation.promise, format!("{} (in {scenario}{with})", violation.text));
    }
}

/// Reports a violation.
pub fn report_breach(promise: &'static str, why: impl Into<String>) {
    let why = why.into();
    let mut breaches = FINDINGS.breaches.lock();
    let reported = breaches.entry(promise).or_default();
    if reported.len() < MAX_REPORTED && reported.insert(why.clone()) {
        send_line(&FindingLine::Broken { id: promise.to_owned(), why });
    }
}

pub fn count_breaches(promise: &'static str) -> usize {
    FINDINGS.breaches.lock().get(promise).map_or(0, BTreeSet::len)
}

/// A standing promise was exercised.
pub fn note_seen(promise: &'static str) {
    if FINDINGS.seen.lock().insert(promise) {
        send_line(&FindingLine::Seen { id: promise.to_owned() });
    }
}

/// Attributes what follows in a scenario to another one.
pub fn set_scenario(id: &str) {
    send_line(&FindingLine::At { id: id.to_owned() });
}
