//! Unit tests of `counters.rs`.

use super::*;

fn latency(counts: [u64; 4]) -> Latency {
    Latency { bounds: [0.001, 0.002, 0.01].into(), counts: counts.into() }
}

fn totals(requests: u64, rows: &[(u32, u64)], counts: [u64; 4]) -> VersionTotals {
    let batch_rows = rows.iter().copied().collect();
    VersionTotals { requests, batch_rows, latencies: vec![latency(counts)], ..Default::default() }
}

#[test]
fn quantiles_are_interpolated_within_their_bucket() {
    for (counts, quantile, expected) in [
        ([10, 0, 0, 0], 0.5, Some(500.0)),
        ([10, 10, 0, 0], 0.5, Some(1000.0)),
        ([10, 10, 0, 0], 0.75, Some(1500.0)),
        ([0, 0, 4, 0], 0.5, Some(6000.0)),
        // Above the highest bound.
        ([1, 0, 0, 9], 0.99, Some(10_000.0)),
        ([0, 0, 0, 0], 0.5, None),
    ] {
        let found = latency(counts).quantile_us(quantile);
        let close = match (found, expected) {
            (Some(found), Some(expected)) => f64::abs(found - expected) < 1e-6,
            (found, expected) => found == expected,
        };
        assert!(close, "{counts:?} {quantile}: {found:?}");
    }
}

#[test]
fn a_difference_has_what_came_between() {
    let before = totals(5, &[(1, 4), (2, 1)], [5, 0, 0, 0]);
    let now = totals(9, &[(1, 4), (2, 2), (4, 1)], [5, 4, 0, 0]);
    let between = now.since(&before).unwrap();
    assert_eq!(between.requests, 4);
    assert_eq!(between.batch_rows, BTreeMap::from([(2, 1), (4, 1)]));
    assert_eq!(between.batches(), (2, 3.0));
    assert_eq!(between.latencies[0], latency([0, 4, 0, 0]));
    assert!(now.since(&now).unwrap().is_empty());
    // A model that was removed and added again counts from 0.
    assert_eq!(before.since(&now), None);
}

#[test]
fn counts_of_other_bounds_are_all_new() {
    let now = totals(1, &[], [0, 1, 0, 0]);
    let mut before = now.clone();
    before.latencies[0].bounds = [1.0, 2.0, 3.0].into();
    assert_eq!(now.since(&before).unwrap().latencies[0], latency([0, 1, 0, 0]));
}
