//! A latch that blocks requests in the test plugin until the test opens it. Replaces fixed delays.

use crate::compile::folder;
use crate::server::Running;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Blocks requests and models of [`crate::probe`] that have its parameter. Executions are counted
/// in the server's log, so use one at a time.
pub struct Latch {
    folder: TempDir,
}

impl Latch {
    pub fn new() -> Self {
        Latch { folder: folder() }
    }

    /// The value of the parameter.
    pub fn path(&self) -> String {
        self.file().display().to_string()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("open")
    }

    /// The parameter of a model.
    pub fn config(&self) -> (&'static str, String) {
        ("until_file", self.path())
    }

    /// The parameter of a request, as a member of a JSON object.
    pub fn parameter(&self) -> String {
        format!(r#""until_file":"{}""#, self.path())
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

    /// Releases all present and future executions.
    pub fn open(&self) {
        fs::write(self.file(), "").unwrap_or_else(|e| panic!("{}: {e}", self.file().display()));
    }
}

impl Default for Latch {
    fn default() -> Self {
        Self::new()
    }
}
