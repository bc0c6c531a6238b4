//! Unit tests of `metrics.rs`.

use super::*;

#[test]
fn open_metrics_is_sent_to_clients_that_take_nothing_else() {
    for (accept, expected) in [
        ("", MetricsFormat::Text),
        ("*/*", MetricsFormat::Text),
        ("text/plain", MetricsFormat::Text),
        ("application/openmetrics-text", MetricsFormat::OpenMetrics),
        ("application/openmetrics-text; version=2.0.0", MetricsFormat::Text),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.5", MetricsFormat::Text),
        ("application/openmetrics-text;q=0", MetricsFormat::Text),
        ("application/openmetrics-text, text/plain;q=0", MetricsFormat::OpenMetrics),
        ("application/openmetrics-text, text/*;q=0.1", MetricsFormat::Text),
        // Prometheus 2 and 3.
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            MetricsFormat::Text,
        ),
        (
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            MetricsFormat::Text,
        ),
    ] {
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
        assert_eq!(accepted_format(&headers), expected, "{accept}");
    }
}
