//! Unit tests of `real_path.rs`.

use super::*;
use std::os::unix::fs::symlink;

#[test]
fn links_are_resolved_also_where_nothing_exists() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    symlink("a/b", root.join("inner")).unwrap();
    symlink("/outside/gone", root.join("a/dangling")).unwrap();
    symlink("dangling", root.join("a/twice")).unwrap();
    symlink("self", root.join("self")).unwrap();
    for (path, want) in [
        ("a", Some(root.join("a"))),
        ("inner", Some(root.join("a/b"))),
        ("inner/new/x", Some(root.join("a/b/new/x"))),
        ("inner/..", Some(root.join("a"))),
        ("new/../x", None),
        ("a/dangling", Some("/outside/gone".into())),
        ("a/twice/x", Some("/outside/gone/x".into())),
        ("self", None),
        ("nul\0", None),
    ] {
        assert_eq!(real_path(&root.join(path)).ok(), want, "{path:?}");
    }
}
