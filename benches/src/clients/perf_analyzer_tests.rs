//! Unit tests of `perf_analyzer.rs`.

use super::column;

#[test]
fn a_column_is_found_by_its_name() {
    let table = "Concurrency,Inferences/Second,p50 latency\n4,1200.5,310\n";
    assert_eq!(column(table, "Inferences/Second"), Some(1200.5));
    assert_eq!(column(table, "p50 latency"), Some(310.0));
    assert_eq!(column(table, "p99 latency"), None);
}
