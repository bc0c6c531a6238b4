//! Unit tests of `download.rs`.

use super::*;

#[test]
fn tags_of_listing_and_object_are_compared() {
    for (listed, sent, expected) in [
        (Some("\"a\""), Some("\"a\""), true),
        (Some("a"), Some("\"a\""), true),
        (Some("\"a\""), Some("W/\"a\""), true),
        (Some("\"a\""), Some("\"b\""), false),
        (Some("\"a\""), None, false),
        (None, Some("\"a\""), true),
        (None, None, true),
    ] {
        assert_eq!(is_same_tag(listed, sent), expected, "{listed:?} {sent:?}");
    }
}
