//! Messages of `plugin check`: the task of the child process, and the findings that it sends.

use crate::subprocess::ReportPipe;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{LazyLock, OnceLock};
use trtserver_base::sync::Mutex;
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
pub enum Line {
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

pub static PIPE: OnceLock<ReportPipe> = OnceLock::new();
static SEEN: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
static VIOLATIONS: LazyLock<Mutex<HashSet<(&'static str, String)>>> = LazyLock::new(Mutex::default);
static BREACHES: LazyLock<Mutex<HashMap<&'static str, HashSet<String>>>> =
    LazyLock::new(Mutex::default);

/// Reported violations of one promise, at most.
const MAX_REPORTED: usize = 3;

pub fn send(line: &Line) {
    if let Some(pipe) = PIPE.get() {
        pipe.send(line);
    }
}

/// The scenario that runs, and the requests that it executes.
static NOW: LazyLock<Mutex<(String, String)>> = LazyLock::new(Mutex::default);

pub fn begin(id: &str) {
    if let Some(pipe) = PIPE.get() {
        // What was printed before explains no crash from here on.
        pipe.mark_output();
    }
    *NOW.lock() = (id.to_owned(), String::new());
    send(&Line::Begin { id: id.to_owned() });
}

/// Describes the requests that are executed from here on, for reports of violations and crashes.
pub fn case(text: &str) {
    let mut now = NOW.lock();
    if now.1 != text {
        now.1 = text.to_owned();
        send(&Line::Case { text: text.to_owned() });
    }
}

/// A violation that the test host detected. Reported with the case in which it was first seen.
pub fn violated(violation: &Violation) {
    if VIOLATIONS.lock().insert((violation.promise, violation.text.clone())) {
        let (scenario, case) = NOW.lock().clone();
        let with = if case.is_empty() { case } else { format!(", with {case}") };
        breach(violation.promise, format!("{} (in {scenario}{with})", violation.text));
    }
}

/// Reports a violation.
pub fn breach(promise: &'static str, why: impl Into<String>) {
    let why = why.into();
    let mut breaches = BREACHES.lock();
    let reported = breaches.entry(promise).or_default();
    if reported.len() < MAX_REPORTED && reported.insert(why.clone()) {
        send(&Line::Broken { id: promise.to_owned(), why });
    }
}

pub fn breaches(promise: &'static str) -> usize {
    BREACHES.lock().get(promise).map_or(0, HashSet::len)
}

/// A standing promise was exercised.
pub fn seen(promise: &'static str) {
    if SEEN.lock().insert(promise) {
        send(&Line::Seen { id: promise.to_owned() });
    }
}

/// Attributes what follows in a scenario to another one.
pub fn at(id: &str) {
    send(&Line::At { id: id.to_owned() });
}
