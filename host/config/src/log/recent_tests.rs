//! Unit tests of `recent.rs`.

use super::*;
use std::time::{Duration, SystemTime};

fn log_line(level: Level, message: &str) -> LogLine {
    LogLine {
        now: SystemTime::UNIX_EPOCH + Duration::from_millis(1500),
        pid: 1,
        level,
        target: "trtserver".to_owned(),
        file: "a.rs".to_owned(),
        line: 7,
        message: message.to_owned(),
        fields: vec![("n".to_owned(), 3.into())],
    }
}

fn texts(lines: &RecentLines, after: u64, level: LineLevel) -> Vec<String> {
    lines.after(after, level).0.into_iter().map(|line| line.text).collect()
}

#[test]
fn lines_are_found_by_number_and_level() {
    let lines = RecentLines::default();
    for (level, text) in [
        (Level::INFO, "one"),
        (Level::ERROR, "two"),
        (Level::DEBUG, "three"),
        (Level::WARN, "four"),
    ] {
        lines.add(&log_line(level, text));
    }
    for (after, level, expected) in [
        (0, LineLevel::Verbose, &["one n=3", "two n=3", "three n=3", "four n=3"][..]),
        (0, LineLevel::Info, &["one n=3", "two n=3", "four n=3"]),
        (0, LineLevel::Warning, &["two n=3", "four n=3"]),
        (2, LineLevel::Error, &[]),
        (3, LineLevel::Info, &["four n=3"]),
        (4, LineLevel::Verbose, &[]),
    ] {
        assert_eq!(texts(&lines, after, level), expected, "{after} {level:?}");
        assert_eq!(lines.after(after, level).1, 4);
    }
    let first = &lines.after(0, LineLevel::Info).0[0];
    assert_eq!((first.number, first.unix_ms, &*first.place), (1, 1500, "a.rs:7"));
}

#[test]
fn old_lines_are_forgotten_by_number_and_by_bytes() {
    let lines = RecentLines::default();
    for n in 0..MAX_LINES + 5 {
        lines.add(&log_line(Level::INFO, &n.to_string()));
    }
    let (kept, last) = lines.after(0, LineLevel::Verbose);
    assert_eq!((kept.len(), kept[0].number, last), (MAX_LINES, 6, MAX_LINES as u64 + 5));
    for _ in 0..MAX_LINES {
        lines.add(&log_line(Level::INFO, &"x".repeat(10 << 10)));
    }
    let kept = lines.after(0, LineLevel::Verbose).0;
    let bytes: usize = kept.iter().map(|line| line.text.len() + line.place.len()).sum();
    assert!(kept.len() > 100 && bytes <= MAX_BYTES, "{} {bytes}", kept.len());
}

#[test]
fn a_disabled_ring_keeps_nothing() {
    let lines = RecentLines::default();
    lines.add(&log_line(Level::INFO, "one"));
    lines.disable();
    lines.add(&log_line(Level::INFO, "two"));
    assert!(!lines.is_enabled());
    assert_eq!(lines.after(0, LineLevel::Verbose), (vec![], 0));
}
