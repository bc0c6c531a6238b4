//! Unit tests of `control.rs`.

use super::*;

fn metric(number: u64, name: &str) -> MetricMessage {
    MetricMessage {
        number,
        kind: metric_kind::COUNTER,
        name: name.into(),
        ..MetricMessage::default()
    }
}

#[test]
fn number_of_a_series_is_not_used_twice() {
    let mut metrics = Metrics::default();
    metrics.create(metric(1, "control_rs_first")).unwrap();
    let e = metrics.create(metric(1, "control_rs_second")).unwrap_err();
    assert!(e.message.contains("number 1 is in use"), "{e}");
    // It would count towards no limit.
    let families = trtserver_plugin_host::host_api::metric::gather_metrics();
    assert!(families.iter().all(|family| family.name() != "control_rs_second"));
}

#[test]
fn additions_of_several_children_to_one_gauge_add_up() {
    let gauge = MetricMessage { kind: metric_kind::GAUGE, ..metric(1, "control_rs_gauge") };
    let (mut first, mut second) = (Metrics::default(), Metrics::default());
    first.create(gauge.clone()).unwrap();
    second.create(gauge).unwrap();
    let update = |set: Option<f64>, added| MetricValue {
        number: 1,
        set: set.is_some(),
        value: set.unwrap_or_default(),
        added,
        ..MetricValue::default()
    };
    let value = |metrics: &Metrics| metrics.by_number[&1].metric.series.get();
    first.put(&update(None, 3.0));
    second.put(&update(None, -1.0));
    first.put(&update(None, 2.0));
    assert_eq!((value(&first), value(&second)), (4.0, 4.0));
    second.put(&update(Some(10.0), 0.5));
    assert_eq!(value(&first), 10.5);
}

#[test]
fn reports_of_a_child_count_for_its_model_and_end_with_it() {
    let mut reports = Reports::new("model control_rs:7");
    let report = |scope, bytes| MemoryReport {
        scope,
        // A child cannot report for another model.
        label: "model other:1".into(),
        memory_type: 2,
        device_id: 1,
        bytes,
    };
    let seen = || -> Vec<u64> {
        let all = reported_memory::reported_memory();
        let model = Some((Arc::from("control_rs"), 7));
        all.iter().filter(|r| r.reporter.model == model).map(|r| r.bytes).collect()
    };
    for (scope, bytes) in [(1, 10), (2, 20), (1, 30)] {
        reports.put(report(scope, bytes));
    }
    assert_eq!(seen(), [30, 20]);
    reports.put(report(2, 0));
    assert_eq!(seen(), [30]);
    drop(reports);
    assert!(seen().is_empty());
}
