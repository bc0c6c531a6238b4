//! Unit tests of `header_pattern.rs`.

use super::*;

fn parse(pattern: &str) -> Result<Option<HeaderPattern>, String> {
    HeaderPattern::parse("http-header-forward-pattern", pattern)
}

#[test]
fn a_part_of_the_name_matches_in_any_case() {
    assert_eq!(parse(""), Ok(None));
    let pattern = parse("My-.*").unwrap().unwrap();
    assert!(pattern.matches("my-header") && pattern.matches("x-my-y"));
    assert!(!pattern.matches("your-header"));
    let exact = parse("(?-i)^MY$").unwrap().unwrap();
    assert!(exact.matches("MY") && !exact.matches("my"));
}

#[test]
fn hostile_patterns_are_refused() {
    for (pattern, text) in [
        ("(", "unclosed group"),
        ("(a{1000}){1000}", "size limit"),
        ("a{4294967296}", "not valid"),
        ("\\p{Greek}", "not valid"),
        (&"(".repeat(300), "not valid"),
        (&"a".repeat(5000), "at most 4096 are allowed"),
    ] {
        let error = parse(pattern).unwrap_err();
        assert!(error.contains(text), "{error}");
    }
}
