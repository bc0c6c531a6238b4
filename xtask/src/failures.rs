//! Collects the failed tests from the output of `cargo test`, so that a long log ends with them.

use crate::command::{Result, cannot_start, failed};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// Lines of a failed test that are repeated.
const LINES: usize = 12;

/// Failed tests, each with the beginning of its message.
#[derive(Default)]
pub struct Failures {
    pub text: String,
    /// Lines that may still be added for the current test.
    left: usize,
}

impl Failures {
    /// Takes the next line that a test program has printed.
    pub fn line(&mut self, line: &str) {
        let name = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----"));
        if let Some(name) = name {
            self.text += &format!("failed: {name}\n");
            self.left = LINES;
        } else if line.starts_with("failures:") || line.starts_with("test result:") {
            self.left = 0;
        } else if self.left > 0 && !line.trim().is_empty() {
            self.text += &format!("  {line}\n");
            self.left -= 1;
        }
    }
}

/// Runs `cargo test` as [`crate::command::run`] does. An error ends with the failed tests.
pub fn run(command: &mut Command) -> Result<()> {
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| cannot_start(command, &e, ""))?;
    let mut failures = Failures::default();
    if let Some(output) = child.stdout.take() {
        let mut to = std::io::stdout().lock();
        // Bytes: tests print what servers have logged.
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(|e| format!("cannot read the output of the tests: {e}"))?;
            let _ = to.write_all(&line).and_then(|()| to.write_all(b"\n"));
            failures.line(&String::from_utf8_lossy(&line));
        }
    }
    let status = child.wait().map_err(|e| format!("cannot wait for the tests: {e}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{}\n{}", failed(command, &status.to_string(), ""), failures.text))
}

#[cfg(test)]
#[path = "failures_tests.rs"]
mod tests;
