//! Unit tests of `closing.rs`.

use super::*;

#[test]
fn closes_with_the_last_user() {
    let gate = Gate::new();
    let open = Open::new(&gate);
    let (shared, other) = (Arc::clone(&open), Open::new(&gate));
    drop(open);
    drop(other);
    assert!(!gate.wait(Duration::ZERO));
    let waiting = std::thread::spawn({
        let gate = Arc::clone(&gate);
        move || gate.wait(Duration::from_secs(30))
    });
    drop(shared);
    assert!(waiting.join().unwrap() && gate.is_closed());
}
