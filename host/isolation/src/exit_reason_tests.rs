//! Unit tests of `exit_reason.rs`.

use super::*;

#[test]
fn text_names_signal_code_and_kill_reason() {
    let text = |raw: i32, why: Option<KillReason>| {
        let tail = "; its last lines: oh".to_owned();
        ExitReason { status: Some(ExitStatus::from_raw(raw)), killed: why, tail }.text()
    };
    let silent = || Some(KillReason::ResponseTimeout(Duration::from_millis(500)));
    for (raw, why, want) in [
        (11, None, "was killed by signal 11 (SIGSEGV); its last lines: oh"),
        (3 << 8, None, "ended with exit code 3; its last lines: oh"),
        (9, silent(), "did not respond within 0.5 s and was killed; its last lines: oh"),
        (6, silent(), "was killed by signal 6 (SIGABRT); its last lines: oh"),
        (40, None, "was killed by signal 40; its last lines: oh"),
    ] {
        assert_eq!(text(raw, why), want);
    }
}
