//! The limit of the memory budget.

use trtserver_base::budget::{address_space_limit, available_memory, request_memory};
use trtserver_config::ServerSettings;

/// Sets the limit of memory: `--max-request-memory`, or half of the memory that this process may
/// use. Never more than half of a limited address space, which holds programs, stacks and models,
/// too.
pub fn set_memory_limit(settings: &ServerSettings) {
    let space = address_space_limit();
    let limit = settings.max_request_memory.unwrap_or_else(|| available_memory() / 2);
    let limit = space.map_or(limit, |space| limit.min(space / 2));
    request_memory().set_limit(usize::try_from(limit).unwrap_or(usize::MAX));
    request_memory().set_counts_address_space(space.is_some());
    tracing::info!("Memory for requests is limited to {} MiB", limit >> 20);
}
