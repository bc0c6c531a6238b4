//! Unit tests of `cpu.rs`.

use super::*;

#[test]
fn utilization_is_that_since_the_last_scrape() {
    let first = CpuTimes::parse("cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 1 2 3 4 5\n").unwrap();
    assert_eq!(first, CpuTimes { idle: 80, total: 100 });
    let second = CpuTimes::parse("cpu  60 0 10 120 10 0 0 0 5 0\n").unwrap();
    assert_eq!(second.utilization_since(first), 0.5);
    assert_eq!(first.utilization_since(first), 0.0);
    assert_eq!(CpuTimes::parse("intr 1 2\n"), None);
}

#[test]
fn machine_memory_is_read_in_bytes() {
    let text = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n";
    assert_eq!(machine_memory(text), Some((1000 << 10, 400 << 10)));
    assert_eq!(machine_memory("MemTotal: 1000 kB\n"), None);
}
