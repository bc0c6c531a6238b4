//! Unit tests of `rate_limit_settings.rs`.

use super::*;

#[test]
fn resources_are_read() {
    for (text, name, count, device) in [
        ("R1:4", "R1", 4, None),
        ("gpu memory:10:2", "gpu memory", 10, Some(2)),
        ("r:0:0", "r", 0, Some(0)),
    ] {
        let expected = RateLimitResource { name: name.to_owned(), count, device };
        assert_eq!(parse_resource(text), Ok(expected));
    }
}

#[test]
fn wrong_resources_are_refused_with_the_reason() {
    for (text, reason) in [
        ("R1", "the count is missing"),
        (":4", "the name is missing"),
        ("R1:x", "'x' is not a count"),
        ("R1:-1", "'-1' is not a count"),
        ("R1:4:cpu", "'cpu' is not the id of a device"),
        ("R1:4:-1", "'-1' is not the id of a device"),
        ("R1:4:0:9", "found ':9' after the device"),
    ] {
        let error = parse_resource(text).unwrap_err();
        let start = format!("--rate-limit-resource={text}: expected NAME:COUNT[:DEVICE]");
        assert!(error.starts_with(&start) && error.ends_with(reason), "{error}");
    }
}
