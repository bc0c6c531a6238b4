//! Unit tests of `load_progress.rs`.

use super::*;

/// As if the load had begun that long ago.
fn begun(ago: Duration) -> LoadProgress {
    LoadProgress {
        model: "m".into(),
        version: 3,
        start_ns: now_ns() - ago.as_nanos() as u64,
        instances: AtomicUsize::new(2),
        open: AtomicUsize::new(0),
        opened_ns: AtomicU64::new(0),
        cancel: Arc::default(),
        lines: AtomicU64::new(0),
    }
}

#[test]
fn long_load_has_one_line_for_each_interval() {
    assert_eq!(begun(Duration::ZERO).line(), None);
    let load = begun(INTERVAL + INTERVAL / 2);
    let line = load.line().unwrap();
    assert!(line.starts_with("still loading 'm' version 3 after "), "{line}");
    assert!(line.ends_with(" s: 0 of 2 instances are open"), "{line}");
    assert_eq!(load.line(), None);
    load.instance_opened();
    load.instance_opened();
    load.cancel.flag().report("reading weights", 455);
    load.lines.store(0, Ordering::Relaxed);
    let line = load.line().unwrap();
    assert!(line.ends_with(" s: warm-up, reading weights (45.5 %)"), "{line}");
}

#[test]
fn time_after_the_last_instance_opened_is_warm_up() {
    let load = begun(Duration::from_secs(5));
    assert_eq!(load.open_and_warm().1, Duration::ZERO, "without an instance there is none");
    load.opened_ns.store(load.start_ns + 2_000_000_000, Ordering::Relaxed);
    let (open, warm) = load.open_and_warm();
    assert_eq!(open, Duration::from_secs(2));
    assert!(warm >= Duration::from_secs(3), "{warm:?}");
}

#[test]
fn load_is_in_progress_until_it_is_dropped() {
    let loads = Arc::new(LoadsInProgress::default());
    let load = loads.begin("registered", 1, &Arc::default());
    let is_listed = || loads.list().iter().any(|load| &*load.model == "registered");
    assert!(is_listed());
    drop(load);
    assert!(!is_listed());
}
