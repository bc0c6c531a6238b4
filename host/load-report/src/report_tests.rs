//! Unit tests of `report.rs`.

use super::*;

fn busy_report() -> LoadReport {
    LoadReport {
        application_utilization: 0.5,
        requests_per_second: 12.25,
        errors_per_second: 1.0,
        utilization: vec![("model.a,b=ü:c".into(), 0.5)],
        pending_requests: 3,
        draining: true,
    }
}

#[test]
fn text_has_one_value_per_name() {
    let expected = "application_utilization=0.500000, rps_fractional=12.250000, eps=1.000000, \
                    utilization.model.a_b___c=0.500000, named_metrics.pending_requests=3.000000, \
                    named_metrics.draining=1.000000";
    assert_eq!(busy_report().text(), expected);
}

#[test]
fn json_is_ascii_and_names_are_whole() {
    let json = busy_report().json();
    assert!(json.is_ascii(), "{json}");
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["utilization"]["model.a,b=ü:c"], 0.5);
    assert_eq!(read["rps_fractional"], 12.25);
}

#[test]
fn message_has_the_numbers_of_orca() {
    let report = LoadReport { application_utilization: 1.0, ..LoadReport::default() };
    let unnamed = OrcaLoadReport { named_metrics: Default::default(), ..report.message() };
    // Field 9, a double: 1.0.
    assert_eq!(unnamed.encode_to_vec(), [9 << 3 | 1, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    assert_eq!(
        OrcaLoadReport::decode(busy_report().bytes().as_slice()).unwrap(),
        busy_report().message()
    );
}
