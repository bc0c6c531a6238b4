//! Unit tests of `usage.rs`.

use super::*;

#[test]
fn wait_ends_when_the_last_user_is_dropped() {
    let tracker = UsageTracker::new();
    let guard = UsageGuard::new(&tracker);
    let (shared, other) = (Arc::clone(&guard), UsageGuard::new(&tracker));
    drop(guard);
    drop(other);
    assert!(!tracker.wait_until_unused(Duration::ZERO));
    let waiting = std::thread::spawn({
        let tracker = Arc::clone(&tracker);
        move || tracker.wait_until_unused(Duration::from_secs(30))
    });
    drop(shared);
    assert!(waiting.join().unwrap() && tracker.is_unused());
}
