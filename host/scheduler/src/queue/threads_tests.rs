//! Unit tests of `threads.rs`.

use super::*;

#[test]
fn each_instance_keeps_its_place() {
    let threads = InstanceThreads::new(2);
    let places =
        || (0..100).map(|i| std::ptr::from_ref(threads.condvar_for(i))).collect::<Vec<_>>();
    let first = places();
    assert_eq!(first, places());
    let different: std::collections::HashSet<_> = first.into_iter().collect();
    assert_eq!(different.len(), 100);
}
