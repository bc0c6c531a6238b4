//! Limit of open files, and how many connections it allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that connections leave to models, logs, health and metrics: a quarter, within these
/// bounds.
const RESERVE: std::ops::RangeInclusive<u64> = 44..=4096;

const MAX_RESERVED: u64 = 64;

/// Connections that the limit of open files leaves place for.
pub fn max_connections() -> usize {
    let Some(files) = getrlimit(Resource::Nofile).current else { return usize::MAX };
    usize::try_from(files.saturating_sub(reserved_descriptors(files)).max(files / 4))
        .unwrap_or(usize::MAX)
        .max(1)
}

/// Connections that the reserve leaves place for, on each of the listeners for health and metrics.
pub fn reserved_connections() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (reserved_descriptors(files) / 6).min(MAX_RESERVED) as usize
}

fn reserved_descriptors(files: u64) -> u64 {
    (files / 4).clamp(*RESERVE.start(), *RESERVE.end())
}

/// Raises the soft limit of open files to the hard limit. Each connection needs a file descriptor;
/// the usual soft limit of 1024 protects programs that use `select`, which this one does not.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let number = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |n| n.to_string());
    let (before, after) = (number(limit.current), number(limit.maximum));
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::info!("limit of open files raised from {before} to {after}"),
        Err(e) => {
            tracing::warn!("cannot raise the limit of open files from {before} to {after}: {e}")
        }
    }
}
