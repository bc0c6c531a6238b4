//! A latch that holds requests in the test plugin until the test opens it, so that no test has to guess how long
//! something takes.

use crate::compile::folder;
use crate::server::Running;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Requests and models of [`crate::probe`] with its parameter are executed until it is opened. A server has
/// at most one: requests are counted in its log.
pub struct Latch {
    folder: TempDir,
}

impl Latch {
    pub fn new() -> Self {
        Latch { folder: folder() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("open")
    }

    /// The parameter of a model.
    pub fn config(&self) -> (&'static str, String) {
        ("until_file", self.file().display().to_string())
    }

    /// The parameter of a request, as a member of a JSON object.
    pub fn parameter(&self) -> String {
        format!(r#""until_file":"{}""#, self.file().display())
    }

    /// Waits until this many executions have reached it.
    #[track_caller]
    pub fn wait_for(&self, server: &Running, executions: usize) {
        let held = |log: &str| {
            let lines = log.matches("the probe waits for the file").count();
            (lines >= executions).then_some(())
        };
        server.process().stderr_until(&format!("{executions} executions held by the latch"), held);
    }

    /// Lets all of them go on, and those to come.
    pub fn open(&self) {
        fs::write(self.file(), "").unwrap_or_else(|e| panic!("{}: {e}", self.file().display()));
    }
}

impl Default for Latch {
    fn default() -> Self {
        Self::new()
    }
}
