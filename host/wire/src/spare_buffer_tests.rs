//! Unit tests of `spare_buffer.rs`.

use super::*;

#[test]
fn buffer_is_used_again_unless_it_is_large() {
    let first = take_buffer(100);
    let second = take_buffer(100);
    assert!(first.is_empty() && first.capacity() >= 100 && second.capacity() >= 100);
    let at = first.as_ptr();
    drop(second);
    let mut sent = first;
    sent.extend_from_slice(b"a response");
    give_back(sent);
    let again = take_buffer(300);
    assert_eq!((again.as_ptr(), again.len()), (at, 0));
    give_back(again);
    assert!(take_buffer(MAX + 1).capacity() > MAX);
    let grown = Vec::with_capacity(MAX + 1);
    give_back(grown);
    let kept = take_buffer(MIN);
    assert_eq!(kept.as_ptr(), at, "a large buffer was kept");
    give_back(vec![1; 7]);
    assert!(take_buffer(MIN).capacity() >= MIN, "a short buffer was handed out");
}
