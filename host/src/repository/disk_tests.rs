//! Unit tests of `disk.rs`.

use super::*;
use std::os::unix::fs::symlink;

#[test]
fn a_print_changes_with_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    fs::create_dir(path.join("1")).unwrap();
    fs::write(path.join("1/model"), "abc").unwrap();
    let first = Print::of(path).unwrap();
    assert_eq!(Print::of(path).unwrap(), first);
    fs::write(path.join("1/model"), "abcd").unwrap();
    let second = Print::of(path).unwrap();
    assert_ne!(second, first);
    // In circles, and to nowhere.
    symlink("..", path.join("1/up")).unwrap();
    symlink("1", path.join("2")).unwrap();
    symlink("nowhere", path.join("lost")).unwrap();
    let third = Print::of(path).unwrap();
    assert_ne!(third, second);
    fs::remove_file(path.join("lost")).unwrap();
    assert_ne!(Print::of(path).unwrap(), third);
    assert!(Print::of(&path.join("none")).is_err());
}

#[test]
fn names_that_lead_elsewhere_have_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let roots = [dir.path().join("root")];
    fs::create_dir_all(roots[0].join("m")).unwrap();
    assert_eq!(dirs(&roots, "m"), [roots[0].join("m")]);
    for name in ["", ".", "..", "../root", "m/", "m/..", "/tmp", "m\0", "a\\b"] {
        assert!(dirs(&roots, name).is_empty(), "{name:?}");
    }
}
