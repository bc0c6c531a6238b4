//! Unit tests of `metric.rs`.

use super::*;

fn shown(name: &str) -> usize {
    let families = REGISTRY.gather();
    families.iter().find(|f| f.name() == name).map_or(0, |f| f.get_metric().len())
}

#[test]
fn a_series_is_made_once_and_goes_with_its_last_scope() {
    let labels = |value: &str| [("at".to_owned(), value.to_owned())];
    let name = "metric_rs_made_once";
    let (first, second) = (CustomMetrics::default(), CustomMetrics::default());
    let ask = |of: &CustomMetrics, at: &str| of.metric(true, name, "", &labels(at)).unwrap();
    let metric = ask(&first, "a");
    for _ in 0..100 {
        assert!(Arc::ptr_eq(&metric, &ask(&first, "a")));
    }
    assert_eq!(first.made.lock().len(), 1);
    assert!(!Arc::ptr_eq(&metric, &ask(&first, "b")));
    let other = ask(&second, "a");
    metric.put(1.0).unwrap();
    other.put(2.0).unwrap();
    assert_eq!((metric.series.get(), shown(name)), (3.0, 2));
    for (counter, label) in [(false, "at"), (true, "in")] {
        let labels = [(label.to_owned(), String::new())];
        let e = first.metric(counter, name, "", &labels).err().unwrap();
        assert!(e.message.contains("another kind or other labels (at)"), "{e}");
    }
    drop(first);
    // Nobody but the test holds what plugins were given.
    assert_eq!(Arc::strong_count(&metric), 1);
    assert_eq!((other.series.get(), shown(name)), (3.0, 1));
    drop(second);
    assert_eq!(shown(name), 0);
}
