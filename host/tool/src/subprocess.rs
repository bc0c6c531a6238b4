//! Runs this program as a child process, which loads code under test and reports in lines of JSON.
//! A crash, a hang or an `exit` there is a result, not the end of the tool.

use parking_lot::Mutex;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, kill_process_group, set_parent_process_death_signal, setrlimit,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Lines of the child's standard error that are kept for a report.
const LAST_LINES: usize = 5;
/// On the child's standard error: lines before it are no longer of interest. The ASCII record
/// separator.
const MARK: u8 = 0x1E;

/// The child's pipe to its parent, the original standard output. Output of the code under test goes
/// to standard error instead, so that it is not taken for a report.
pub struct ReportPipe(Mutex<File>);

impl ReportPipe {
    /// Redirects standard output; the first step of the child.
    pub fn open() -> Result<Self, String> {
        let fail = |e: io::Error| format!("the report cannot be sent: {e}");
        // The child ends with its parent, and expected crashes write no core file.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        let report = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3);
        let report = report.map_err(|e| fail(e.into()))?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr()).map_err(|e| fail(e.into()))?;
        Ok(Self(Mutex::new(File::from(report))))
    }

    /// Makes the parent forget what was printed so far.
    pub fn mark_output(&self) {
        // SAFETY: with null all of C's output streams are flushed.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        let _ = io::stderr().write_all(&[MARK, b'\n']);
    }

    /// Sends one line. A closed pipe means that the parent has given up.
    pub fn send(&self, what: &impl Serialize) {
        if let Ok(mut line) = serde_json::to_vec(what) {
            line.push(b'\n');
            let mut out = self.0.lock();
            let _ = out.write_all(&line);
        }
    }
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitCause {
    Exit(i32),
    Signal(i32),
    /// Killed after this time limit.
    TimedOut(Duration),
}

/// The end of a child, and the last lines of its standard error.
pub struct ChildEnd {
    pub end: ExitCause,
    pub last_lines: Vec<String>,
}

impl ChildEnd {
    /// Continues a sentence after "the backend".
    pub fn describe(&self) -> String {
        let mut text = match &self.end {
            ExitCause::Exit(code) => format!("ended the process with exit status {code}"),
            ExitCause::Signal(number) => format!("crashed with {}", signal_name(*number)),
            ExitCause::TimedOut(limit) => {
                format!("did not return within {} s", limit.as_secs_f64())
            }
        };
        if !self.last_lines.is_empty() {
            text += &format!("; last output: {}", self.last_lines.join(" | "));
        }
        text
    }
}

fn signal_name(number: i32) -> String {
    let name = match number {
        libc::SIGSEGV => "SIGSEGV (invalid memory access)",
        libc::SIGBUS => "SIGBUS",
        libc::SIGABRT => "SIGABRT",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}

/// Runs this program with these arguments, passes each line of its report to `on_line`, and waits
/// for its end. `limit` starts over whenever `on_line` returns true.
///
/// # Errors
/// The child cannot be started.
pub fn run_child(
    args: &[OsString],
    limit: Duration,
    mut on_line: impl FnMut(Value) -> bool,
) -> Result<ChildEnd, String> {
    let fail = |e: io::Error| format!("cannot start a child process: {e}");
    let exe = std::env::current_exe().map_err(fail)?;
    let mut command = Command::new(exe);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A process group, so that its own children end with it.
    let mut child = command.process_group(0).spawn().map_err(fail)?;
    let (lines, inbox) = channel();
    if let Some(report) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(report).lines() {
                let Ok(line) = line else { break };
                if let Ok(value) = serde_json::from_str(&line)
                    && lines.send(value).is_err()
                {
                    break;
                }
            }
        });
    }
    let (tails, tail) = channel();
    let stderr = child.stderr.take();
    thread::spawn(move || {
        let _ = tails.send(stderr.map_or_else(Vec::new, last_lines));
    });
    let mut deadline = Instant::now() + limit;
    let mut late = false;
    loop {
        match inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(value) => {
                if on_line(value) {
                    deadline = Instant::now() + limit;
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                late = true;
                break;
            }
        }
    }
    // The process may close the pipe and keep running.
    while !late {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            Ok(None) => late = true,
            _ => break,
        }
    }
    if let Some(group) = Pid::from_raw(child.id() as i32) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait().map_err(fail)?;
    let end = match (late, status.code(), status.signal()) {
        (true, ..) => ExitCause::TimedOut(limit),
        (_, Some(code), _) => ExitCause::Exit(code),
        (_, None, signal) => ExitCause::Signal(signal.unwrap_or(0)),
    };
    let last_lines = tail.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    Ok(ChildEnd { end, last_lines })
}

/// Reads to the end and keeps the last lines behind the last [`MARK`], truncated.
fn last_lines(from: impl Read) -> Vec<String> {
    let mut last = VecDeque::new();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        if let Some(at) = line.iter().rposition(|byte| *byte == MARK) {
            last.clear();
            line.drain(..=at);
        }
        let text = String::from_utf8_lossy(&line);
        let text: String = text.trim().chars().take(200).collect();
        line.clear();
        if !text.is_empty() {
            last.push_back(text);
        }
        if last.len() > LAST_LINES {
            last.pop_front();
        }
    }
    last.into()
}
