//! Unit tests of `report_format.rs`.

use super::*;

#[test]
fn requests_ask_for_a_form() {
    for (value, expected) in [
        ("text", Some(ReportFormat::Text)),
        ("json", Some(ReportFormat::Json)),
        ("bin", Some(ReportFormat::Binary)),
        ("xml", None),
        ("TEXT", None),
    ] {
        let headers = HeaderMap::from_iter([(FORMAT, HeaderValue::from_static(value))]);
        assert_eq!(ReportFormat::requested(&headers), expected, "{value}");
    }
    assert_eq!(ReportFormat::requested(&HeaderMap::new()), None);
}

#[test]
fn each_form_has_its_header() {
    let report = LoadReport { requests_per_second: 2.0, ..LoadReport::default() };
    for (format, name, prefix) in [
        (ReportFormat::Text, REPORT, "TEXT application_utilization=0.000000, rps_fractional=2.0"),
        (ReportFormat::Json, REPORT, "JSON {"),
        // Field 6, a double: 2.0.
        (ReportFormat::Binary, BINARY_REPORT, "MQAAAAAAAABA"),
    ] {
        let mut headers = HeaderMap::new();
        format.add_to(&mut headers, &report);
        let value = headers[name].to_str().unwrap();
        assert!(value.starts_with(prefix), "{value}");
    }
}
