//! Unit tests of `pages.rs`.

use super::*;
use crate::paths::Paths;

#[test]
fn named_files_and_functions_must_exist() {
    let root = Paths::find().root;
    for (named, wrong) in [
        ("host/src/main.rs", false),
        ("net/mod.rs", false),
        ("net/nothing.rs", true),
        ("host/src/main.rs::main", false),
        ("host/src/main.rs::nothing", true),
        ("nothing.rs", false),
        ("net/{http,grpc}/mod.rs", false),
        ("--model-store=/models", false),
        ("GET /v2/health/live", false),
    ] {
        assert_eq!(problem(&root, named).is_some(), wrong, "{named}");
    }
}
