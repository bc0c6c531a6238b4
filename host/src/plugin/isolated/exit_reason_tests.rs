//! Unit tests of `words.rs`.

use super::*;

#[test]
fn what_happened_is_said() {
    let says = |raw: i32, why: Option<Why>| {
        let tail = "; its last lines: oh".to_owned();
        Ended { status: Some(ExitStatus::from_raw(raw)), why, tail }.text()
    };
    let silent = || Some(Why::Silent(Duration::from_millis(500)));
    for (raw, why, want) in [
        (11, None, "was killed by signal 11 (SIGSEGV); its last lines: oh"),
        (3 << 8, None, "ended with exit code 3; its last lines: oh"),
        (9, silent(), "did not answer within 0.5 s and was killed; its last lines: oh"),
        (6, silent(), "was killed by signal 6 (SIGABRT); its last lines: oh"),
        (40, None, "was killed by signal 40; its last lines: oh"),
    ] {
        assert_eq!(says(raw, why), want);
    }
}
