//! Unit tests of `limit.rs`.

use super::*;

#[test]
fn instances_are_limited_in_sum() {
    let limit = InstanceLimit::new(Some(5));
    let first = limit.reserve(3, "model 'a' version 1").unwrap();
    let text = |count| limit.reserve(count, "model 'b' version 1").err().map(|e| e.message);
    let want = "model 'b' version 1 has 3 instances and the server has 3 already, at most 5 are \
                allowed by --max-instances";
    assert_eq!(text(3).as_deref(), Some(want));
    assert_eq!(text(2), None);
    drop(first);
    assert_eq!(text(5), None);
    assert!(text(usize::MAX).is_some());
}

#[test]
fn default_is_derived_from_the_system() {
    let max = InstanceLimit::new(None).max;
    assert!((1..=DEFAULT).contains(&max), "{max}");
}
