//! Unit tests of `recent.rs`.

use super::*;

#[test]
fn queries_name_a_number_and_a_level() {
    let query = |after, level| Ok(EntryQuery { after, level });
    for (text, expected) in [
        (None, query(0, LineLevel::Verbose)),
        (Some(""), query(0, LineLevel::Verbose)),
        (Some("after=7"), query(7, LineLevel::Verbose)),
        (Some("level=warning&after=18446744073709551615"), query(u64::MAX, LineLevel::Warning)),
        (Some("after=-1"), Err("query 'after': expected a number, found '-1'")),
        (
            Some("level=loud"),
            Err("query 'level': expected error, warning, info or verbose, found 'loud'"),
        ),
        (Some("first=1"), Err("unknown key 'first' in the query: expected 'after' or 'level'")),
    ] {
        let found = EntryQuery::parse(text).map_err(|e| e.message);
        assert_eq!(found, expected.map_err(str::to_owned), "{text:?}");
    }
}

#[test]
fn lines_that_are_not_kept_are_an_error() {
    let lines = RecentLines::default();
    let all = EntryQuery { after: 0, level: LineLevel::Verbose };
    assert_eq!(lines_json(&lines, all).unwrap(), br#"{"last":0,"lines":[]}"#);
    lines.disable();
    assert!(lines_json(&lines, all).unwrap_err().message.contains("--ui=off"));
}
