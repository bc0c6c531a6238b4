//! Unit tests of `row.rs`.

use super::*;
use crate::clients::{Client, Workload};
use crate::requests::{Frontend, Work};

const CASE: Case = Case {
    workload: Workload { frontend: Frontend::V2Http, work: Work::Identity(64), concurrency: 16 },
    client: Client::Own,
};

fn pass(cpu_us: f64) -> Pass {
    let [p50_us, p99_us, p999_us, max_us] = [10.0, 20.0, 30.0, f64::NAN];
    let (client_cpu_us, client_user_us) = (f64::NAN, f64::NAN);
    Pass {
        per_second: 1000.0,
        p50_us,
        p99_us,
        p999_us,
        max_us,
        cpu_us,
        client_cpu_us,
        client_user_us,
        response_bytes: 1,
    }
}

#[test]
fn every_cell_has_a_column() {
    let measured = Measured { ours: vec![pass(20.0)], ..Measured::default() };
    assert_eq!(measured.cells(&CASE, false, 0.0).len(), COLUMNS.len());
    assert_eq!(measured.cells(&CASE, true, 0.0).len(), COLUMNS.len() + PEER_COLUMNS.len());
}

#[test]
fn latency_is_compared_with_the_call_in_process() {
    let alone = Case { workload: Workload { concurrency: 1, ..CASE.workload }, ..CASE };
    let p50_us = 47.0;
    let measured = Measured { ours: vec![Pass { p50_us, ..pass(1.0) }], ..Measured::default() };
    assert_eq!(measured.cells(&alone, false, 3.0)[20], "PASS");
    assert_eq!(measured.cells(&alone, false, 1.0)[20], "MISS");
}

#[test]
fn ratios_are_ours_over_the_other() {
    let measured = Measured {
        ours: vec![pass(20.0), pass(21.0), pass(60.0)],
        floor: vec![pass(10.0)],
        peer: vec![pass(42.0)],
        peaks: [Some(30.0), None],
        ..Measured::default()
    };
    let cells = measured.cells(&CASE, true, 0.0);
    assert_eq!(cells[8..11], ["20", "30", "-"]);
    assert_eq!(cells[17..21], ["2.10", "190 %!", "floor_ratio <=3.0", "PASS"]);
    assert_eq!(cells[27..], ["-", "1.00", "1.00", "0.50"]);
}
