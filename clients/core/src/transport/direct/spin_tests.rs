//! When waits poll.

use super::*;

/// Whether the next wait polls; what it polls for is there at once.
fn polls(spin: &mut SpinPolicy) -> bool {
    spin.until(|| Some(())).is_some()
}

#[test]
fn waits_without_polling_double_after_each_poll_in_vain() {
    let mut spin = SpinPolicy::default();
    for skipped in [1, 2, 4, 8, 16, 32, 64, 64] {
        let begin = Instant::now();
        assert_eq!(spin.until(|| None::<()>), None);
        assert!(begin.elapsed() >= LIMIT);
        for _ in 0..skipped {
            assert!(!polls(&mut spin));
        }
    }
    assert!(polls(&mut spin));
    // A success ends the backoff.
    assert_eq!(spin.until(|| None::<()>), None);
    assert!(!polls(&mut spin));
    assert!(polls(&mut spin));
}
