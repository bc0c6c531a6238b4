//! Unit tests of `version.rs`.

use super::*;

#[test]
fn compare_orders_by_age() {
    let in_order = [
        "alpha",
        "",
        "0.9",
        "0.10",
        "1.0-alpha",
        "1.0-beta.2",
        "1.0-beta.11",
        "1.0-rc1",
        "1.0",
        "1.0+build",
        "1.0.0",
        "1.0-1",
        "1.2",
        "1.30.9",
        "1.31",
        "1.31.1",
        "2024.1-rc1",
        "2024.1-rc2",
        "2024.1",
        "2024.2",
        "99999999999999999999998",
        "99999999999999999999999",
    ];
    for (i, a) in in_order.iter().enumerate() {
        for (j, b) in in_order.iter().enumerate() {
            assert_eq!(compare_versions(a, b), i.cmp(&j), "'{a}' and '{b}'");
        }
    }
    assert_eq!(compare_versions("v1.3", "1.2"), Ordering::Greater);
    // Different texts are never equal, whatever they mean.
    assert_ne!(compare_versions("1.01", "1.1"), Ordering::Equal);
}

#[test]
fn requested_prefix_ends_between_pieces() {
    for (version, requirement, expected) in [
        ("1.31.1", "1.31.1", true),
        ("1.31.1", "1.31", true),
        ("1.31-rc1", "1.31", true),
        ("1.310", "1.31", false),
        ("1.31rc1", "1.31", false),
        ("1.31", "1.31.1", false),
        ("1.31", "", false),
    ] {
        assert_eq!(
            matches_requested(version, requirement),
            expected,
            "{version} for {requirement}"
        );
    }
}
