//! Which generation a library speaks that does not say it: its initialise is called in a process
//! that is thrown away, as B (v0.12) and, if that fails, as C (v1.0 and later).
//!
//! Neither succeeds by accident. A library of generation C that is called as B takes the length of
//! the configuration for the address at which it stores its context. One of generation B that is
//! called as C stores its context anywhere but where it is looked for.

use crate::generation::{Generation, PARAMETER};
use libc::{c_int, pid_t};
use std::fmt;
use std::time::{Duration, Instant};

/// How long a trial may take. One that takes longer works on its configuration, so it was
/// understood.
const LIMIT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Signals for which the process may have handlers that report a crash.
const CRASHES: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialOutcome {
    /// It returned success and a context.
    Succeeded,
    /// It returned an error or no context, or ended the process.
    Failed,
    /// Its process was ended by this signal.
    Crashed(c_int),
    /// It did not end in time, or could not be tried.
    Unknown,
}

impl fmt::Display for TrialOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("succeeds"),
            Self::Failed => f.write_str("fails"),
            Self::Crashed(signal) => write!(f, "ends with signal {signal}"),
            Self::Unknown => f.write_str("did not end in time"),
        }
    }
}

/// The outcomes of both trials, the second if there was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialReport {
    pub as_b: TrialOutcome,
    pub as_c: Option<TrialOutcome>,
}

impl TrialReport {
    /// Calls initialise as B by `call`, and as C unless that succeeds.
    pub fn new(mut call: impl FnMut(Generation) -> TrialOutcome) -> Self {
        let as_b = call(Generation::V0_12);
        let understood = matches!(as_b, TrialOutcome::Succeeded | TrialOutcome::Unknown);
        Self { as_b, as_c: (!understood).then(|| call(Generation::V1_0)) }
    }

    /// `None`: the library crashes in both, and may do so for reasons of its own.
    pub fn generation(self) -> Option<Generation> {
        match (self.as_b, self.as_c) {
            (_, Some(TrialOutcome::Succeeded)) => Some(Generation::V1_0),
            (TrialOutcome::Crashed(_), _) => None,
            // Without a crash B is safe to call: it says what is wrong.
            _ => Some(Generation::V0_12),
        }
    }
}

impl fmt::Display for TrialReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { as_b, as_c } = self;
        write!(
            f,
            "it exports no CustomVersion, and no parameter '{PARAMETER}' says its generation; tried in a process of its \
             own, its initialise {as_b} as one of generation {}",
            Generation::V0_12
        )?;
        as_c.map_or(Ok(()), |as_c| {
            write!(f, ", and {as_c} as one of generation {}", Generation::V1_0)
        })
    }
}

/// Calls `initialize` in a copy of this process, which ends with it.
pub fn call_in_copy(initialize: impl FnOnce() -> c_int) -> TrialOutcome {
    // SAFETY: the copy has this thread alone. The C library's locks of memory allocation are
    // consistent after a fork; for others that the call may wait for, the trial has a time limit.
    // Nothing returns from the copy.
    match unsafe { libc::fork() } {
        -1 => TrialOutcome::Unknown,
        0 => {
            become_silent();
            let code = initialize();
            // SAFETY: ends the copy without exit handlers, which belong to the process.
            unsafe { libc::_exit(c_int::from(code != 0)) }
        }
        copy => wait_for_copy(copy),
    }
}

/// A crash of the copy is neither reported nor dumped, and what it prints is not logged.
fn become_silent() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: system calls with constants and a structure of ours; the copy has one thread.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        for signal in CRASHES {
            libc::signal(signal, libc::SIG_DFL);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY);
        if null >= 0 {
            libc::dup2(null, 1);
            libc::dup2(null, 2);
        }
    }
}

fn wait_for_copy(copy: pid_t) -> TrialOutcome {
    let begin = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: the out pointer is ours; the process is a child of this one and not reaped yet.
        match unsafe { libc::waitpid(copy, &raw mut status, libc::WNOHANG) } {
            0 if begin.elapsed() < LIMIT => std::thread::sleep(POLL_INTERVAL),
            0 => {
                // SAFETY: as above; it is killed before it is reaped.
                unsafe {
                    libc::kill(copy, libc::SIGKILL);
                    libc::waitpid(copy, &raw mut status, 0);
                }
                return TrialOutcome::Unknown;
            }
            -1 => return TrialOutcome::Unknown,
            _ if libc::WIFSIGNALED(status) => {
                return TrialOutcome::Crashed(libc::WTERMSIG(status));
            }
            _ if libc::WEXITSTATUS(status) == 0 => return TrialOutcome::Succeeded,
            _ => return TrialOutcome::Failed,
        }
    }
}

#[cfg(test)]
#[path = "trial_tests.rs"]
mod tests;
