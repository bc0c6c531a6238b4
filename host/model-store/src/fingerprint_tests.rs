//! Unit tests of `fingerprint.rs`.

use super::*;
use std::os::unix::fs::symlink;

#[test]
fn fingerprint_changes_with_files_and_follows_links() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    fs::create_dir(path.join("1")).unwrap();
    fs::write(path.join("1/model"), "abc").unwrap();
    let first = ModelFingerprint::from_dir(path).unwrap();
    assert_eq!(ModelFingerprint::from_dir(path).unwrap(), first);
    fs::write(path.join("1/model"), "abcd").unwrap();
    let second = ModelFingerprint::from_dir(path).unwrap();
    assert_ne!(second, first);
    // A cycle of links, and a dangling link.
    symlink("..", path.join("1/up")).unwrap();
    symlink("1", path.join("2")).unwrap();
    symlink("missing", path.join("dangling")).unwrap();
    let third = ModelFingerprint::from_dir(path).unwrap();
    assert_ne!(third, second);
    fs::remove_file(path.join("dangling")).unwrap();
    assert_ne!(ModelFingerprint::from_dir(path).unwrap(), third);
    assert!(ModelFingerprint::from_dir(&path.join("none")).is_err());
}

#[test]
fn parts_are_compared_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    for version in ["1", "12"] {
        fs::create_dir(path.join(version)).unwrap();
        fs::write(path.join(version).join("model"), "abc").unwrap();
    }
    fs::write(path.join("labels.txt"), "a").unwrap();
    let first = ModelFingerprint::from_dir(path).unwrap();
    let none = |_: &Path| false;
    fs::write(path.join("1/model"), "abcd").unwrap();
    let second = ModelFingerprint::from_dir(path).unwrap();
    assert!(!first.has_same_version(&second, "1") && first.has_same_version(&second, "12"));
    assert!(first.has_same_shared_files(&second, none));
    fs::write(path.join("labels.txt"), "ab").unwrap();
    let third = ModelFingerprint::from_dir(path).unwrap();
    assert!(second.has_same_version(&third, "1") && !second.has_same_shared_files(&third, none));
    assert!(second.has_same_shared_files(&third, |path| path == Path::new("labels.txt")));
    // What does not count.
    for name in [".labels.txt.swp", "labels.txt~", "1/.git", "12/model.tmp"] {
        fs::write(path.join(name), "x").unwrap();
    }
    fs::create_dir(path.join("lost+found")).unwrap();
    for dir in ["__pycache__", "1/__pycache__"] {
        fs::create_dir(path.join(dir)).unwrap();
        fs::write(path.join(dir).join("model.cpython-311.pyc"), "x").unwrap();
    }
    assert_eq!(ModelFingerprint::from_dir(path).unwrap(), third);
}
