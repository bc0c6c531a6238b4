//! The list of batch sizes that a backend has prepared an instance for, checked.

use trtserver_plugin_api::abi::extensions::BatchSize;

/// A list of sizes is at most this long.
const MAX_SIZES: usize = 256;

/// # Errors
/// What the interface asks for, and what the list has.
pub fn check_sizes(sizes: &[BatchSize], max_rows: u32) -> Result<(), String> {
    let ascending = sizes.windows(2).all(|pair| pair[0].rows < pair[1].rows);
    let in_range = sizes.iter().all(|size| (1..=max_rows).contains(&size.rows));
    if ascending && in_range && sizes.len() <= MAX_SIZES {
        return Ok(());
    }
    let found: Vec<u32> = sizes.iter().take(MAX_SIZES).map(|size| size.rows).collect();
    Err(format!(
        "the backend lists {} batch sizes: {found:?}; expected are at most {MAX_SIZES} ascending numbers from 1 to \
         {max_rows}",
        sizes.len()
    ))
}

#[cfg(test)]
#[path = "batch_sizes_tests.rs"]
mod tests;
