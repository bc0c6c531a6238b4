//! Unit tests of `control.rs`.

use super::*;

fn metric(number: u64, name: &str) -> Metric {
    Metric { number, kind: metric_kind::COUNTER, name: name.into(), ..Metric::default() }
}

#[test]
fn number_of_a_series_is_not_used_twice() {
    let mut metrics = Metrics::default();
    metrics.create(metric(1, "control_rs_first")).unwrap();
    let e = metrics.create(metric(1, "control_rs_second")).unwrap_err();
    assert!(e.message.contains("number 1 is in use"), "{e}");
    // It would count towards no limit.
    let families = crate::plugin::host_api::metric::gather();
    assert!(families.iter().all(|family| family.name() != "control_rs_second"));
}
