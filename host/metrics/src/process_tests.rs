//! Unit tests of `process.rs`.

use super::*;

#[test]
fn fields_are_found_behind_any_name() {
    let stat = "7 (a) b (c) S 1 2 3 0 -1 4 5 0 0 0 30 12 0 0 20 0 9 0 4711 1048576 256 18446744073709551615 1";
    let expected = ProcessStat {
        cpu_ticks: 42,
        threads: 9,
        start_ticks: 4711,
        virtual_bytes: 1 << 20,
        resident_pages: 256,
    };
    assert_eq!(ProcessStat::parse(stat), Some(expected));
    assert_eq!(ProcessStat::parse("7 (a) S 1"), None);
}

#[test]
fn boot_time_is_read() {
    assert_eq!(boot_time("cpu 1 2\nbtime 1700000000\nprocesses 5\n"), Some(1_700_000_000));
}
