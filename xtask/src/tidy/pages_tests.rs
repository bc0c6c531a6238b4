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
