//! Unit tests of `arrows.rs`.

use super::*;

const PAGE: &str = "text\n<!-- arrows -->\n\n| part | may use | why |\n|---|---|---|\n| `*` | `error` | |\n\
                    | `net` | `request` | not `plugin` |\n| `request` | | |\n\n| `other` | `net` | |\n";

#[test]
fn uses_outside_the_table_are_found() {
    let arrows = Arrows::parse(PAGE).unwrap();
    let found = |inside: &str, text: &str| {
        let mut findings = Vec::new();
        arrows.check(Path::new(inside), inside, text, &mut findings);
        findings.len()
    };
    for (inside, text, findings) in [
        ("net/mod.rs", "use crate::request::InferRequest;\nuse crate::error::Error;", 0),
        ("net/mod.rs", "use crate::net::sink;", 0),
        ("net/mod.rs", "use crate::plugin::Model;", 1),
        ("net/mod.rs", "let a: crate::plugin::A = crate::device::b();", 2),
        ("net/mod.rs", "// crate::plugin is not used here", 0),
        ("request.rs", "use crate::net::sink;", 1),
        ("request/mod.rs", "use tokio::sync::mpsc;", 1),
        ("request/mod_tests.rs", "use crate::net::sink;", 0),
        ("other/mod.rs", "", 1),
    ] {
        assert_eq!(found(inside, text), findings, "{inside}: {text}");
    }
}

#[test]
fn a_page_without_a_table_is_refused() {
    assert!(Arrows::parse("| `net` | `request` |").is_none());
    assert!(Arrows::parse("<!-- arrows -->\ntext").is_none());
}
