//! Unit tests of `fingerprint.rs`.

use super::*;
use std::os::unix::fs::symlink;

#[test]
fn fingerprint_changes_with_files_and_follows_links() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    fs::create_dir(path.join("1")).unwrap();
    fs::write(path.join("1/model"), "abc").unwrap();
    let first = Fingerprint::of(path).unwrap();
    assert_eq!(Fingerprint::of(path).unwrap(), first);
    fs::write(path.join("1/model"), "abcd").unwrap();
    let second = Fingerprint::of(path).unwrap();
    assert_ne!(second, first);
    // A cycle of links, and a dangling link.
    symlink("..", path.join("1/up")).unwrap();
    symlink("1", path.join("2")).unwrap();
    symlink("missing", path.join("dangling")).unwrap();
    let third = Fingerprint::of(path).unwrap();
    assert_ne!(third, second);
    fs::remove_file(path.join("dangling")).unwrap();
    assert_ne!(Fingerprint::of(path).unwrap(), third);
    assert!(Fingerprint::of(&path.join("none")).is_err());
}
