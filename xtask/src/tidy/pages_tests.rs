//! Unit tests of `pages.rs`.

use super::*;
use crate::paths::Paths;

#[test]
fn named_files_and_functions_must_exist() {
    let root = Paths::find().root;
    for (named, wrong) in [
        ("host/src/main.rs", false),
        ("wire/src/lib.rs", false),
        ("wire/src/nothing.rs", true),
        ("host/src/main.rs::main", false),
        ("host/src/main.rs::nothing", true),
        ("nothing.rs", false),
        ("wire/src/{http,grpc}/mod.rs", false),
        ("--model-store=/models", false),
        ("GET /v2/health/live", false),
    ] {
        assert_eq!(problem(&root, named).is_some(), wrong, "{named}");
    }
}

#[test]
fn every_trust_boundary_has_a_test() {
    let root = Paths::find().root;
    let this = "xtask/src/tidy/pages_tests.rs";
    let table = |held_by: &str| {
        format!("# Security\n\n{BOUNDARIES}\n\n| who | held by |\n|---|---|\n| x | {held_by} |\n")
    };
    for (page, expected) in [
        (table(&format!("`{this}::every_trust_boundary_has_a_test`")), None),
        (table(&format!("`{this}::not_a_function`")), Some("has no test `not_a_function`")),
        // A function, but not a test.
        (table("`xtask/src/tidy/pages.rs::check`"), Some("has no test `check`")),
        (table("review"), Some("no test holds the boundary `x`")),
        ("# Security\n".to_owned(), Some("no table")),
    ] {
        let mut found = Vec::new();
        check_boundaries(&root, &page, &mut found);
        match expected {
            None => assert!(found.is_empty(), "{found:?}"),
            Some(text) => assert!(found.len() == 1 && found[0].contains(text), "{found:?}"),
        }
    }
}
