//! A model whose configuration is settled: its versions can be opened, now and one by one.

use super::build::Prepared;
use super::{Model, Served, Version, VersionState, ensemble};
use crate::error::Result;
use crate::instance::priority::Priority;
use std::sync::Arc;
use std::time::Instant;

/// What a model's versions are opened from.
pub enum Source {
    Backend(Box<Prepared>),
    Ensemble(Arc<ensemble::Prepared>),
}

/// A model with its versions to load, by number: directory name and the entry in the table.
pub struct Job {
    pub source: Source,
    pub model: Arc<Model>,
    pub versions: Vec<(Arc<Version>, String)>,
}

impl Source {
    /// How many threads count beside each other.
    pub fn instances(&self) -> usize {
        match self {
            Source::Backend(prepared) => prepared.plans().len(),
            Source::Ensemble(_) => 1,
        }
    }

    fn open(&self, version: &Version, entry: &str) -> Result<Arc<Served>> {
        match self {
            Source::Backend(prepared) => prepared.open(version, entry),
            Source::Ensemble(prepared) => {
                let served = prepared.open(version)?;
                version.depends_on(Arc::clone(&prepared.needs));
                Ok(served)
            }
        }
    }
}

impl Job {
    pub fn priority(&self) -> Priority {
        self.model.priority()
    }

    /// Says whether a model of the server has the highest priority. To be said before a version is opened.
    pub fn tell(&mut self, max_asked: bool) {
        if let Source::Backend(prepared) = &mut self.source {
            prepared.max_asked = max_asked;
        }
    }

    /// The models of an ensemble's steps.
    pub fn uses(&self) -> Option<Vec<String>> {
        match &self.source {
            Source::Backend(_) => None,
            Source::Ensemble(e) => Some(e.uses()),
        }
    }

    /// Opens a version and serves it.
    pub fn load(&self, version: &(Arc<Version>, String)) -> Result<(), String> {
        let number = version.0.number;
        self.open("loading", version).map(|served| self.model.ready(&version.0, served)).map_err(
            |e| {
                self.model.not_ready(&version.0, VersionState::Unavailable, e.message.clone());
                format!("'{}' version {number}: {e}", self.model.name)
            },
        )
    }

    /// Opens a version without serving it. What is done is called `doing` in the log.
    pub fn open(
        &self,
        doing: &str,
        (version, entry): &(Arc<Version>, String),
    ) -> Result<Arc<Served>> {
        let (name, number) = (&self.model.name, version.number);
        tracing::info!("{doing}: {name}:{number}");
        let start = Instant::now();
        let opened = self.source.open(version, entry);
        match &opened {
            Ok(_) => tracing::info!(
                "successfully loaded '{name}' version {number} in {:.1} ms",
                start.elapsed().as_secs_f64() * 1e3
            ),
            Err(e) => tracing::error!("failed to load '{name}' version {number}: {e}"),
        }
        opened
    }
}
