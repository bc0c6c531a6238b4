//! Unit tests of `window.rs`.

use super::{NoWindow, TrialDecision, Trials, Window, window_bounds};
use crate::engine::{CompletedRequests, Record};
use crate::statistics::ServerStats;

fn record(start: u64, end: u64) -> Record {
    Record {
        start,
        begun: start,
        end,
        send: 10,
        receive: 20,
        ends_sequence: end.is_multiple_of(2),
        delayed: false,
        responses: 1,
    }
}

fn window(records: Vec<Record>, length: u64, batch: usize) -> Result<Window, NoWindow> {
    let taken = CompletedRequests { records, failures: 0, first_failure: None };
    Window::new(taken, length, batch, ServerStats::default())
}

#[test]
fn the_window_is_in_the_centre() {
    let records = [record(100, 150), record(140, 1300)];
    assert_eq!(window_bounds(&records, 1000), (200, 1200));
    // A request that was due long before it was sent does not move the window.
    let late = Record { start: 0, ..records[0] };
    assert_eq!(window_bounds(&[late, records[1]], 1000), (200, 1200));
    // Records shorter than the window.
    assert_eq!(window_bounds(&records, 5000), (100, 5100));
}

#[test]
fn requests_that_end_within_the_window_count() {
    // From 0 to 1200: the window is 100 to 1100.
    let records = vec![
        record(0, 99),
        record(0, 100),
        record(500, 601),
        record(1000, 1100),
        record(1000, 1200),
    ];
    let window = window(records, 1000, 4).unwrap();
    assert_eq!(window.latencies, [100, 100, 101]);
    assert_eq!((window.requests, window.sequences, window.average_ns), (3, 2, 100));
    assert_eq!((window.send_ns, window.receive_ns), (10, 20));
    // Three requests of four inferences in a microsecond.
    assert_eq!(window.infer_per_sec, f64::from(12.0_f32 / 1e-6_f32));
}

#[test]
fn a_window_without_requests_is_an_error() {
    assert_eq!(window(Vec::new(), 1000, 1), Err(NoWindow::NoRequests));
    let failed = CompletedRequests {
        failures: 2,
        first_failure: Some("no".into()),
        ..CompletedRequests::default()
    };
    let error = Window::new(failed, 1000, 1, ServerStats::default()).unwrap_err();
    assert_eq!(error.text(), "all requests failed; the first: no");
}

#[test]
fn percentiles_are_picked_as_perf_client_does() {
    let records = (1..=100).map(|n| record(0, n * 1000)).collect();
    let window = window(records, 1_000_000, 1).unwrap();
    let picked = [50.0, 90.0, 95.0, 99.0, 99.99].map(|percent| window.percentile(percent) / 1000);
    assert_eq!(picked, [51, 90, 95, 99, 100]);
    assert_eq!((window.judged(None) / 1000, window.judged(Some(90)) / 1000), (50, 90));
    // The population's deviation of 1 to 100 is 28.9.
    assert_eq!(window.deviation_us, 28);
    assert_eq!(Window::default().percentile(99.0), 0);
}

#[test]
fn joined_windows_have_the_figures_of_all_requests() {
    let one = window(vec![record(0, 100), record(0, 200)], 1000, 2).unwrap();
    let two = window(vec![record(0, 300)], 1000, 2).unwrap();
    let all = Window::joined(&[one, two], 2);
    assert_eq!((all.requests, all.duration_ns, all.average_ns), (3, 2000, 200));
    assert_eq!(all.latencies, [100, 200, 300]);
    assert_eq!(all.infer_per_sec, f64::from(6.0_f32 / (2000.0_f32 / 1e9)));
}

#[test]
fn stability_needs_three_windows_within_the_threshold() {
    const MS: u64 = 1_000_000;
    let next = |windows: &[(f64, u64)], limit| {
        let mut trials = Trials::default();
        for (throughput, latency) in windows {
            match *throughput {
                0.0 => trials.add_failed(),
                throughput => trials.add(throughput, latency * MS),
            }
        }
        trials.next(0.1, limit, 5)
    };
    type Case = (&'static [(f64, u64)], u64, TrialDecision);
    let cases: [Case; 10] = [
        (&[(100.0, 10), (100.0, 10)], 0, TrialDecision::Continue),
        (&[(100.0, 10), (100.0, 10), (100.0, 10)], 0, TrialDecision::Stable),
        (&[(95.0, 10), (100.0, 10), (105.0, 10)], 0, TrialDecision::Stable),
        (&[(80.0, 10), (100.0, 10), (120.0, 10)], 0, TrialDecision::Continue),
        (&[(100.0, 10), (100.0, 10), (100.0, 13)], 0, TrialDecision::Continue),
        (&[(1.0, 99), (100.0, 10), (100.0, 10), (100.0, 10)], 0, TrialDecision::Stable),
        (&[(100.0, 10), (0.0, 0), (100.0, 10)], 0, TrialDecision::Continue),
        (&[(100.0, 10), (100.0, 20), (100.0, 30)], 10, TrialDecision::OverLimit),
        (&[(0.0, 0), (0.0, 0), (0.0, 0)], 10, TrialDecision::Continue),
        (&[(1.0, 1), (2.0, 1), (3.0, 1), (4.0, 1), (5.0, 1)], 0, TrialDecision::Exhausted),
    ];
    for (windows, limit, expected) in cases {
        assert_eq!(next(windows, limit), expected, "{windows:?}, limit {limit} ms");
    }
}
