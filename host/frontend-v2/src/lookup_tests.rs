//! Unit tests of `lookup.rs`.

use super::*;

#[test]
fn version_texts_are_parsed() {
    let bad = |text: &str, details: &str| {
        Err(format!(
            "failed to get model version from specified version string '{text}'{details}, version \
             should be an integral value > 0"
        ))
    };
    for (text, want) in [
        ("", Ok(None)),
        ("0", Ok(Some(0))),
        ("3", Ok(Some(3))),
        ("1.0", Ok(Some(1))),
        (" +2x", Ok(Some(2))),
        ("-1", bad("-1", "")),
        ("-", bad("-", " (details: stol)")),
        ("9223372036854775808", bad("9223372036854775808", " (details: stol)")),
        ("x", bad("x", " (details: stol)")),
    ] {
        assert_eq!(parse_version(text).map_err(|e| e.message), want, "{text}");
    }
}
