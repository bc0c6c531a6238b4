//! Limit of the memory budget.

use crate::budget::{available, request_memory};
use crate::config::Settings;

/// Sets the limit: `--max-request-memory`, or half of the memory that this process may use.
pub fn set_memory_limit(settings: &Settings) {
    let limit = settings.max_request_memory.unwrap_or_else(|| available() / 2);
    request_memory().set_limit(usize::try_from(limit).unwrap_or(usize::MAX));
    tracing::info!("Memory for requests is limited to {} MiB", limit >> 20);
}
