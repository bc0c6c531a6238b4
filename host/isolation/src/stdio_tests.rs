//! Unit tests of `stdio.rs`.

use super::*;

#[test]
fn splits_long_lines_and_replaces_invalid_utf8() {
    let mut lines = Vec::new();
    let long = "y".repeat(MAX_LINE + 5);
    let bytes = [b"one\r\n\n\xff\xfe\n", long.as_bytes(), b"\nrest"].concat();
    each_line(&bytes[..], |line| lines.push(line.to_owned()));
    let pieces = [&long[..MAX_LINE], "yyyyy"];
    assert_eq!(lines, ["one", "\u{fffd}\u{fffd}", pieces[0], pieces[1], "rest"]);
    let tail = StderrTail::default();
    assert_eq!(tail.text(), "");
    lines.iter().for_each(|line| tail.push(line));
    (0..LINES).for_each(|n| tail.push(&format!("{n}")));
    assert_eq!(tail.text(), "; its last lines: 0 | 1 | 2 | 3 | 4 | 5");
}

#[test]
fn lines_are_limited_per_second_after_a_burst() {
    let begin = Instant::now();
    let mut rate = LineRate::new(begin);
    let mut admitted = |count: u32, at: Duration| {
        (0..count).filter_map(|_| rate.admit(begin + at)).collect::<Vec<u64>>()
    };
    assert_eq!(admitted(BURST + 7, Duration::ZERO), vec![0; BURST as usize]);
    let next = admitted(LINES_PER_SECOND + 5, Duration::from_millis(1500));
    assert_eq!((next.len(), next[0], next[1]), (LINES_PER_SECOND as usize, 7, 0));
    assert_eq!(rate.dropped(), 5);
}
