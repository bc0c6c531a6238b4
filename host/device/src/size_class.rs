//! Sizes of pooled blocks: four steps for each power of two, so that at most a fifth of a block is
//! unused.

/// The smallest block.
const MIN: usize = 4096;

/// The block size for `bytes`; `None` if it exceeds the address space.
pub fn size_class(bytes: usize) -> Option<usize> {
    if bytes <= MIN {
        return Some(MIN);
    }
    // The highest bit stays, and the two below it count the steps.
    let step = 1 << (usize::BITS - 1 - (bytes - 1).leading_zeros()).saturating_sub(2);
    bytes.checked_next_multiple_of(step)
}

#[cfg(test)]
#[path = "size_class_tests.rs"]
mod tests;
