//! The last changes of the repository, in memory: those of `GET /v2/trtserver/changes`.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Changes that are kept.
const MAX_CHANGES: usize = 256;
/// Longer texts are cut: reasons are in the repository index as a whole.
const MAX_TEXT: usize = 1 << 10;

/// What happened to a version, or to a model as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Loading,
    Loaded,
    Failed,
    Unloading,
}

impl ChangeKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Loaded => "loaded",
            Self::Failed => "failed",
            Self::Unloading => "unloading",
        }
    }
}

/// A change of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryChange {
    /// Counts all changes since the start, from 1.
    pub number: u64,
    pub unix_ms: u64,
    pub model: Arc<str>,
    /// `None`: all versions.
    pub version: Option<i64>,
    pub kind: ChangeKind,
    /// How long it took, or why it failed; may be empty.
    pub text: String,
}

/// The last changes.
#[derive(Default)]
pub struct RepositoryChanges(Mutex<ChangeRing>);

#[derive(Default)]
struct ChangeRing {
    changes: VecDeque<RepositoryChange>,
    /// Of the last change.
    number: u64,
}

impl RepositoryChanges {
    pub(crate) fn add(&self, model: &str, version: Option<i64>, kind: ChangeKind, text: &str) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let text = text[..text.floor_char_boundary(MAX_TEXT)].to_owned();
        let mut ring = self.0.lock();
        ring.number += 1;
        let number = ring.number;
        let model = model.into();
        ring.changes.push_back(RepositoryChange { number, unix_ms, model, version, kind, text });
        if ring.changes.len() > MAX_CHANGES {
            ring.changes.pop_front();
        }
    }

    /// The changes after the one with this number, the oldest first, and the number of the last.
    pub fn after(&self, number: u64) -> (Vec<RepositoryChange>, u64) {
        let ring = self.0.lock();
        let new = ring.changes.iter().filter(|change| change.number > number);
        (new.cloned().collect(), ring.number)
    }
}

#[cfg(test)]
#[path = "repository_changes_tests.rs"]
mod tests;
