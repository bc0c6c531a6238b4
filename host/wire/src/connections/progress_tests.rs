//! Unit tests of `progress.rs`.

use super::*;

#[test]
fn ends_of_messages_are_found_at_any_split() {
    let bytes = [1, 0, 0, 0, 3, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 9];
    let ends = [8, 13, 19];
    for size in 1..=bytes.len() {
        let mut messages = Messages::default();
        let mut at = 0;
        for piece in bytes.chunks(size) {
            let before = at;
            at += piece.len();
            let ended = ends.iter().any(|end| (before + 1..=at).contains(end));
            assert_eq!(messages.received(piece), ended, "{size} {at}");
            assert_eq!(messages.is_between(), ends.contains(&at), "{size} {at}");
        }
    }
}
