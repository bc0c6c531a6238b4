//! Unit tests of `failures.rs`.

use super::{Failures, LINES};

#[test]
fn each_failed_test_is_listed_with_its_message() {
    let long: String = (0..LINES * 2).map(|n| format!("log {n}\n")).collect();
    let output = format!(
        "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\n\nfailures:\n\n---- b::c stdout ----\n\n\
         thread 'b::c' panicked at x.rs:1:1:\nleft: 1\n\n---- d stdout ----\n{long}\n\nfailures:\n    b::c\n    d\n\n\
         test result: FAILED. 1 passed; 2 failed\n"
    );
    let mut failures = Failures::default();
    output.lines().for_each(|line| failures.line(line));
    let expected: String = (0..LINES).map(|n| format!("  log {n}\n")).collect();
    assert_eq!(
        failures.text,
        format!(
            "failed: b::c\n  thread 'b::c' panicked at x.rs:1:1:\n  left: 1\nfailed: d\n{expected}"
        )
    );
}

#[test]
fn tests_that_passed_are_not_listed() {
    let mut failures = Failures::default();
    "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed\n\nerror: other"
        .lines()
        .for_each(|line| failures.line(line));
    assert_eq!(failures.text, "");
}
