//! Unit tests of `two_builds.rs`.

use super::*;

#[test]
fn first_difference_is_found() {
    for (one, other, want) in
        [("abc", "abc", None), ("abc", "abd", Some(2)), ("ab", "abc", Some(2)), ("", "", None)]
    {
        assert_eq!(first_difference(one.as_bytes(), other.as_bytes()), want, "{one} {other}");
    }
}
