//! How a child process ended, for logs and errors.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Why the host killed a child.
#[derive(Clone, Debug, PartialEq)]
pub enum KillReason {
    /// No response within this time.
    ResponseTimeout(Duration),
    /// It broke the protocol; completes "it …".
    ProtocolViolation(String),
    /// No response for this time while its model was being unloaded.
    UnloadTimeout(Duration),
    /// The load of its model was broken off.
    LoadCancelled,
    /// The model of the child is being closed.
    Closing,
}

/// How a child process ended: exit status, why the host killed it, and its last log lines.
pub struct ExitReason {
    pub status: Option<ExitStatus>,
    pub killed: Option<KillReason>,
    /// Its last log lines, as the end of a sentence.
    pub tail: String,
}

impl ExitReason {
    /// It exited when asked to.
    pub fn is_clean(&self) -> bool {
        self.killed.is_none() && self.status.is_some_and(|status| status.success())
    }

    /// Completes "the process of …".
    pub fn text(&self) -> String {
        let signal = self.status.and_then(|status| status.signal());
        // It may have crashed just before it was killed; then its own signal is the reason.
        let why = self.killed.as_ref().filter(|_| signal == Some(KILL));
        let what = match (why, signal, self.status.and_then(|status| status.code())) {
            (Some(KillReason::ResponseTimeout(limit)), ..) => {
                format!("did not respond within {} s and was killed", limit.as_secs_f64())
            }
            (Some(KillReason::UnloadTimeout(limit)), ..) => format!(
                "did not respond for {} s while its model was being unloaded and was killed",
                limit.as_secs_f64()
            ),
            (Some(KillReason::ProtocolViolation(what)), ..) => format!("{what} and was killed"),
            (Some(KillReason::LoadCancelled), ..) => {
                "was killed, because the load of its model was broken off".into()
            }
            (Some(KillReason::Closing), ..) => {
                "was killed, because it did not exit when asked to".into()
            }
            (None, Some(signal), _) => match name(signal) {
                Some(name) => format!("was killed by signal {signal} ({name})"),
                None => format!("was killed by signal {signal}"),
            },
            (None, None, Some(code)) => format!("ended with exit code {code}"),
            (None, None, None) => "ended in an unknown way".into(),
        };
        what + &self.tail
    }
}

const KILL: i32 = 9;

fn name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        KILL => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
#[path = "exit_reason_tests.rs"]
mod tests;
