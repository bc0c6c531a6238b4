//! The buffer that a thread encodes its next response into: that of the last one, which it has
//! sent. A small response then costs no call of the allocator.

use std::cell::Cell;

/// Capacity of a new buffer.
const MIN: usize = 512;
/// Larger buffers are not kept.
const MAX: usize = 4 << 10;

thread_local! {
    /// Empty while it is in use.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An empty buffer for at least `capacity` bytes.
pub fn take_buffer(capacity: usize) -> Vec<u8> {
    if capacity > MAX {
        return Vec::with_capacity(capacity);
    }
    let spare = SPARE.try_with(Cell::take).unwrap_or_default();
    if spare.capacity() >= capacity.max(1) { spare } else { Vec::with_capacity(capacity.max(MIN)) }
}

/// Keeps a buffer for [`take_buffer`] unless it is large.
pub fn give_back(mut buffer: Vec<u8>) {
    if (1..=MAX).contains(&buffer.capacity()) {
        buffer.clear();
        let _ = SPARE.try_with(|spare| spare.set(buffer));
    }
}

#[cfg(test)]
#[path = "spare_buffer_tests.rs"]
mod tests;
