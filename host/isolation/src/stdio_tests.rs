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
