//! Process state that a backend must not change.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// State shared by everything in the process.
pub struct Snapshot {
    handlers: Vec<(usize, u64)>,
    blocked: String,
    directory: Option<PathBuf>,
    locale: String,
    environment: BTreeMap<OsString, OsString>,
}

impl Snapshot {
    pub fn take() -> Self {
        let handlers = (1..=64).map(handler).collect();
        // SAFETY: with null the locale is read, not set; the text is valid until the next call.
        let locale = unsafe {
            let text = libc::setlocale(libc::LC_ALL, std::ptr::null());
            if text.is_null() {
                String::new()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        };
        Self {
            handlers,
            blocked: status("SigBlk:"),
            directory: std::env::current_dir().ok(),
            locale,
            environment: std::env::vars_os().collect(),
        }
    }

    /// Describes what differs in `now`.
    pub fn changes(&self, now: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        for (at, (before, after)) in self.handlers.iter().zip(&now.handlers).enumerate() {
            if before != after {
                changes.push(format!("the handler of signal {} was changed", at + 1));
            }
        }
        if self.blocked != now.blocked {
            changes.push(format!(
                "the mask of blocked signals was {} and is {}",
                self.blocked, now.blocked
            ));
        }
        if self.directory != now.directory {
            let show = |d: &Option<PathBuf>| d.clone().unwrap_or_default().display().to_string();
            changes.push(format!(
                "the working directory was '{}' and is '{}'",
                show(&self.directory),
                show(&now.directory)
            ));
        }
        if self.locale != now.locale {
            changes.push(format!("the locale was '{}' and is '{}'", self.locale, now.locale));
        }
        for key in self.environment.keys().chain(now.environment.keys()) {
            if self.environment.get(key) != now.environment.get(key) {
                changes.push(format!("the environment variable '{}' was changed", key.display()));
            }
        }
        changes.dedup();
        changes
    }
}

fn handler(signal: i32) -> (usize, u64) {
    // SAFETY: all zero is a valid value; with a null action the handler is only read.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &mut old) != 0 {
            return (0, 0);
        }
        (old.sa_sigaction, old.sa_flags as u64)
    }
}

fn status(key: &str) -> String {
    let text = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(key));
    line.unwrap_or_default().trim().to_owned()
}

/// Names of the process's threads by their numbers.
pub fn list_threads() -> BTreeMap<String, String> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let named = tasks.filter_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        Some((task.file_name().to_string_lossy().into_owned(), name.trim().to_owned()))
    });
    named.collect()
}

/// Threads that did not exist `before`. Waits for joined threads, which may be listed a moment
/// longer.
pub fn new_threads(before: &BTreeMap<String, String>) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_millis(500);
    loop {
        let now = list_threads();
        let new: Vec<String> = now
            .iter()
            .filter(|(id, _)| !before.contains_key(*id))
            .map(|(_, name)| name.clone())
            .collect();
        if new.is_empty() || Instant::now() > deadline {
            return new;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Open descriptors.
pub fn count_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Resident memory in KiB.
pub fn resident_kib() -> usize {
    status("VmRSS:").split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}
