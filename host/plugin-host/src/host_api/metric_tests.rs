//! Unit tests of `metric.rs`.

use super::*;

fn series_count(name: &str) -> usize {
    let families = gather_metrics();
    families.iter().find(|f| f.name() == name).map_or(0, |f| f.get_metric().len())
}

#[test]
fn series_is_created_once_and_removed_with_its_last_scope() {
    let labels = |value: &str| [("at".to_owned(), value.to_owned())];
    let name = "metric_rs_created_once";
    let (first, second) = (CustomMetrics::default(), CustomMetrics::default());
    let create = |scope: &CustomMetrics, at: &str| {
        scope.metric(MetricKind::Counter, name, "", &labels(at)).unwrap()
    };
    let metric = create(&first, "a");
    for _ in 0..100 {
        assert!(Arc::ptr_eq(&metric, &create(&first, "a")));
    }
    assert_eq!(first.metrics.lock().len(), 1);
    assert!(!Arc::ptr_eq(&metric, &create(&first, "b")));
    let other = create(&second, "a");
    metric.put(1.0).unwrap();
    other.put(2.0).unwrap();
    assert_eq!((metric.series.get(), series_count(name)), (3.0, 2));
    for (kind, label) in [
        (MetricKind::Gauge, "at"),
        (MetricKind::Counter, "in"),
        (MetricKind::Histogram(&[1.0]), "at"),
    ] {
        let labels = [(label.to_owned(), String::new())];
        let e = first.metric(kind, name, "", &labels).err().unwrap();
        assert!(e.message.contains("another kind, other buckets or other labels (at)"), "{e}");
    }
    drop(first);
    // Only the test still holds the metric.
    assert_eq!(Arc::strong_count(&metric), 1);
    assert_eq!((other.series.get(), series_count(name)), (3.0, 1));
    drop(second);
    assert_eq!(series_count(name), 0);
}

#[test]
fn additions_of_threads_are_not_lost() {
    let scope = CustomMetrics::default();
    for kind in [MetricKind::Gauge, MetricKind::Counter] {
        let name = format!("metric_rs_added_{kind:?}");
        let metric = scope.metric(kind, &name, "", &[]).unwrap();
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| (0..1000).for_each(|_| metric.add(1.0).unwrap()));
            }
        });
        assert_eq!(metric.series.get(), 4000.0, "{name}");
    }
    let histogram = scope.metric(MetricKind::Histogram(&[1.0]), "metric_rs_added", "", &[]);
    assert!(histogram.unwrap().add(1.0).is_err());
}

#[test]
fn family_is_removed_with_its_last_series() {
    let name = "metric_rs_removed";
    let create = |scope: &CustomMetrics, counter: bool, label: &str, value: &str| {
        let kind = if counter { MetricKind::Counter } else { MetricKind::Gauge };
        scope.metric(kind, name, "", &[(label.to_owned(), value.to_owned())])
    };
    let (first, second) = (CustomMetrics::default(), CustomMetrics::default());
    create(&first, true, "at", "a").unwrap();
    create(&second, true, "at", "b").unwrap();
    drop(first);
    assert!(create(&CustomMetrics::default(), false, "in", "a").is_err());
    drop(second);
    assert!(!HOST.metrics.families.lock().contains_key(name));
    let other = CustomMetrics::default();
    create(&other, false, "in", "a").unwrap();
    assert_eq!(series_count(name), 1);
}

#[test]
fn series_are_sorted_by_label_values() {
    let name = "metric_rs_sorted";
    let scope = CustomMetrics::default();
    for value in ["c", "a", "d", "b"] {
        scope.metric(MetricKind::Gauge, name, "", &[("at".to_owned(), value.to_owned())]).unwrap();
    }
    let families = gather_metrics();
    let family = families.iter().find(|f| f.name() == name).unwrap();
    let values: Vec<_> = family.get_metric().iter().map(|m| m.get_label()[0].value()).collect();
    assert_eq!(values, ["a", "b", "c", "d"]);
}

#[test]
fn names_of_the_server_are_reserved() {
    for name in ["nv_inference_count", "nv_gpu_utilization", "trtserver_batch_rows_count"] {
        let e = CustomMetrics::default().metric(MetricKind::Counter, name, "", &[]).err().unwrap();
        assert!(e.message.contains("are reserved for the server"), "{e}");
        assert_eq!(series_count(name), 0);
    }
}

#[test]
fn metric_leaves_the_page_with_its_last_handle() {
    let name = "metric_rs_freed";
    let (first, second) = (CustomMetrics::default(), CustomMetrics::default());
    let create = |scope: &CustomMetrics| scope.metric(MetricKind::Counter, name, "", &[]).unwrap();
    let (one, other) = (create(&first), create(&second));
    create(&first);
    one.free();
    one.free();
    // Another scope has it.
    assert_eq!((first.metrics.lock().len(), series_count(name)), (0, 1));
    other.free();
    assert_eq!(series_count(name), 0);
    // More often than it was created, and after its scope.
    other.free();
    let again = create(&second);
    drop(second);
    again.free();
}

#[test]
fn histograms_need_bounds_which_are_those_of_the_family() {
    let name = "metric_rs_histogram";
    let scope = CustomMetrics::default();
    let create = |bounds: &[f64], at: &str| {
        let labels = [("at".to_owned(), at.to_owned())];
        scope.metric(MetricKind::Histogram(bounds), name, "", &labels)
    };
    for (bounds, why) in [
        (&[][..], "needs bounds"),
        (&[1.0, f64::INFINITY], "needs bounds"),
        (&[2.0, 1.0], "metric_rs_histogram"),
    ] {
        let e = create(bounds, "a").err().unwrap();
        assert!(e.message.contains(why), "{e}");
    }
    let histogram = create(&[1.0, 2.0], "a").unwrap();
    let e = create(&[1.0, 3.0], "b").err().unwrap();
    assert!(e.message.contains("other buckets"), "{e}");
    for value in [0.5, 1.0, 1.5, 9.0] {
        histogram.put(value).unwrap();
    }
    assert!(histogram.put(f64::NAN).is_err());
    assert_eq!(histogram.series.get(), 12.0);
    let families = gather_metrics();
    let family = families.iter().find(|f| f.name() == name).unwrap();
    let counts: Vec<u64> = family.get_metric()[0]
        .get_histogram()
        .get_bucket()
        .iter()
        .map(|bucket| bucket.cumulative_count())
        .collect();
    assert_eq!(counts, [2, 3]);
}
