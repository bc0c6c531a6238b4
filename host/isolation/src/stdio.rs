//! Standard output and error of a child process: lines for the log, and the last ones for error
//! messages.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io::Read;
use trtserver_plugin_host::crash_report::FRAME_PREFIX;

/// Longer lines are split.
const MAX_LINE: usize = 8 << 10;
/// Size of the tail: lines, and characters of each.
const LINES: usize = 6;
const CHARACTERS: usize = 300;

/// The last lines that a child printed or logged as a warning or an error.
#[derive(Default)]
pub struct StderrTail(Mutex<VecDeque<String>>);

impl StderrTail {
    pub fn push(&self, line: &str) {
        let line = line.trim();
        // The frames of a crash report would displace what says more. They are in the log.
        if line.is_empty() || line.starts_with(FRAME_PREFIX) {
            return;
        }
        let mut lines = self.0.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(CHARACTERS).collect());
    }

    /// As the end of a sentence; empty when there are no lines.
    pub fn text(&self) -> String {
        let lines = self.0.lock();
        if lines.is_empty() {
            return String::new();
        }
        format!("; its last lines: {}", lines.iter().cloned().collect::<Vec<_>>().join(" | "))
    }
}

/// Calls `line` with every line until the pipe is closed by all writers.
pub fn each_line(mut from: impl Read, mut line: impl FnMut(&str)) {
    let mut buffer = vec![0; MAX_LINE];
    let mut filled = 0;
    let mut emit = |bytes: &[u8]| {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if !bytes.is_empty() {
            line(&String::from_utf8_lossy(bytes));
        }
    };
    loop {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        }
        let mut begin = 0;
        while let Some(end) = buffer[begin..filled].iter().position(|byte| *byte == b'\n') {
            emit(&buffer[begin..begin + end]);
            begin += end + 1;
        }
        buffer.copy_within(begin..filled, 0);
        filled -= begin;
        if filled == buffer.len() {
            emit(&buffer);
            filled = 0;
        }
    }
    emit(&buffer[..filled]);
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;
