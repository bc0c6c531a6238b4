//! Limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit. Each connection needs a file descriptor; the usual soft limit
/// of 1024 protects programs that use `select`, which this one does not.
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
