//! Unit tests of `load_service.rs`.

use super::*;

#[test]
fn intervals_have_bounds() {
    let interval = |seconds, nanos| {
        let report_interval = Some(prost_types::Duration { seconds, nanos });
        report_interval_ms(&OrcaLoadReportRequest { report_interval, ..Default::default() })
    };
    for (seconds, nanos, expected_ms) in [
        (0, 0, 1000),
        (0, 1, 250),
        (0, 300_000_000, 300),
        (5, 0, 5000),
        (1_000_000, 0, 3_600_000),
        (-1, 0, 1000),
    ] {
        assert_eq!(interval(seconds, nanos), expected_ms, "{seconds} s {nanos} ns");
    }
    assert_eq!(report_interval_ms(&OrcaLoadReportRequest::default()), 1000);
}

fn report_interval_ms(request: &OrcaLoadReportRequest) -> u128 {
    report_interval(request).as_millis()
}
