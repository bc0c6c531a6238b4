//! What the child process of `plugin check` is asked to do, and the findings that it sends.

use crate::sync::Mutex;
use crate::tool::subprocess::ReportPipe;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{LazyLock, OnceLock};

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
    Kept {
        id: String,
        note: String,
    },
    Broken {
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
static BREACHES: LazyLock<Mutex<HashMap<&'static str, HashSet<String>>>> =
    LazyLock::new(Mutex::default);

/// Reported violations of one promise, at most.
const MAX_REPORTED: usize = 3;

pub fn send(line: &Line) {
    if let Some(pipe) = PIPE.get() {
        pipe.send(line);
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
