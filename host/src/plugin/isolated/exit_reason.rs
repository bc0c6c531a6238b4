//! How a process ended, in words.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Why the host killed a process.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// It did not answer within this time.
    Silent(Duration),
    /// It did something that no sound process does; completes "it …".
    Nonsense(String),
    /// It did not answer for this time while its model was being unloaded.
    Unloading(Duration),
    /// Nobody needs it any more.
    Closing,
}

/// The end of a process.
pub struct Ended {
    pub status: Option<ExitStatus>,
    pub why: Option<Why>,
    /// What it said last, as the end of a sentence.
    pub tail: String,
}

impl Ended {
    /// It ended because it was asked to.
    pub fn in_order(&self) -> bool {
        self.why.is_none() && self.status.is_some_and(|status| status.success())
    }

    /// Completes "the process of …".
    pub fn text(&self) -> String {
        let signal = self.status.and_then(|status| status.signal());
        // What it died of counts more than what it would have been killed for.
        let why = self.why.as_ref().filter(|_| signal == Some(KILL));
        let what = match (why, signal, self.status.and_then(|status| status.code())) {
            (Some(Why::Silent(limit)), ..) => {
                format!("did not answer within {} s and was killed", limit.as_secs_f64())
            }
            (Some(Why::Unloading(limit)), ..) => format!(
                "did not answer for {} s while its model was being unloaded and was killed",
                limit.as_secs_f64()
            ),
            (Some(Why::Nonsense(what)), ..) => format!("{what} and was killed"),
            (Some(Why::Closing), ..) => "was killed, because it did not end when asked to".into(),
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
