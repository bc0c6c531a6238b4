//! Unit tests of `tools.rs`.

use super::*;

#[test]
fn missing_tools_are_errors_or_left_out() {
    for (missing, error, error_in_ci) in [
        (&[][..], false, false),
        (&["strace"], false, true),
        (&["curl"], true, true),
        (&["make", "valgrind"], true, true),
    ] {
        assert_eq!((is_error(missing, false), is_error(missing, true)), (error, error_in_ci));
    }
}
