//! Unit tests of `heap.rs`.

use super::*;

const MS: u64 = 1_000_000;

#[test]
fn trims_take_a_small_part_of_the_time() {
    for (took_ms, pause_ms) in [(0, 0), (2, 1_000), (30, 15_000), (40, 20_000), (90, 20_000)] {
        let (begin, end) = (7 * MS, (7 + took_ms) * MS);
        assert_eq!(next_trim_ns(begin, end), end + pause_ms * MS, "{took_ms} ms");
    }
    assert_eq!(next_trim_ns(u64::MAX - 1, u64::MAX), u64::MAX);
}
