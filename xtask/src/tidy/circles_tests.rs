//! Unit tests of `circles.rs`.

use super::*;

fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let mut circles = Circles::default();
    circles.add(Path::new("lib.rs"), "mod a;\nmod b;");
    for (file, text) in files {
        circles.add(Path::new(file), text);
    }
    circles.find().into_iter().map(|circle| circle.into_iter().collect()).collect()
}

#[test]
fn circles_are_found_through_paths_groups_and_reexports() {
    let circle = vec![vec!["a.rs".to_owned(), "b/c.rs".to_owned()]];
    for (a, b, c) in [
        ("use crate::b::c::C;", "mod c;", "use crate::a::A;"),
        ("use crate::{x::X, b::{c::{self, C}, D}};", "mod c;", "use super::super::a;"),
        ("use crate::b::C;", "mod c;\npub use c::C;", "fn f() {\n    crate::a::f();\n}"),
        (
            "use crate::b::E as C;",
            "mod c;\npub use c::C as E;",
            "fn f() {\n    use crate::a::A;\n}",
        ),
    ] {
        assert_eq!(found(&[("a.rs", a), ("b/mod.rs", b), ("b/c.rs", c)]), circle, "{a} {b} {c}");
    }
}

#[test]
fn other_uses_are_no_circles() {
    for (a, b, c) in [
        ("use crate::b::c::C;", "mod c;", "// use crate::a::A;\nuse a::A;"),
        ("use crate::b::C;", "mod c;\npub use c::C;", "use super::d;"),
        ("", "mod c;\npub use c::C;\nstruct B;", "use super::B;"),
        ("use crate::b::c::C;", "mod c;", "pub(in crate::a) fn f() {}"),
    ] {
        let files =
            [("a.rs", a), ("b/mod.rs", b), ("b/c.rs", c), ("b/c_tests.rs", "use crate::a;")];
        assert!(found(&files).is_empty(), "{a} {b} {c}");
    }
}

#[test]
fn table_and_circles_must_agree() {
    let mut circles = Circles::default();
    circles.add(Path::new("a.rs"), "use crate::b::B;");
    circles.add(Path::new("b.rs"), "use crate::a::A;");
    let findings = |rows: &str| {
        let mut findings = Vec::new();
        circles.check(&format!("{MARK}\n\n| files | why |\n|---|---|\n{rows}"), &mut findings);
        findings.len()
    };
    assert_eq!(findings("| `a.rs` `b.rs` | both |\n"), 0);
    assert_eq!(findings(""), 1);
    assert_eq!(findings("| `a.rs` `b.rs` | both |\n| `c.rs` `d.rs` | gone |\n"), 1);
}
