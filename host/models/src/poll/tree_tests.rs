//! Unit tests of `tree.rs`.

use super::*;
use std::fs::File;
use std::os::unix::fs::symlink;

/// Directories with a time that is not recent.
fn age(dir: &Path) {
    walk_model_dir(dir, |path, metadata, _| {
        if metadata.is_dir() {
            let old = SystemTime::now() - Duration::from_secs(3600);
            File::open(path).unwrap().set_modified(old).unwrap();
        }
    })
    .unwrap();
}

#[test]
fn every_kind_of_change_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let write = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
    fs::create_dir(path.join("1")).unwrap();
    write("1/model", "abc");
    write("config.pbtxt", "a");
    age(path);
    let first = FileTree::read(path).unwrap();
    assert!(first.is_current() && !first.has_links());
    assert_eq!(first.directories().count(), 2);

    // A file of the same size that is older.
    write("1/new", "abd");
    let older = SystemTime::now() - Duration::from_secs(7200);
    File::open(path.join("1/new")).unwrap().set_modified(older).unwrap();
    fs::rename(path.join("1/new"), path.join("1/model")).unwrap();
    age(path);
    assert!(!first.is_current());
    let second = FileTree::read(path).unwrap();
    assert_ne!(second.fingerprint(), first.fingerprint());
    assert!(second.is_current());

    // A file that does not count changes the time of its directory, but no fingerprint.
    write("1/.model.swp", "x");
    write("1/model~", "x");
    write("1/part.tmp", "x");
    assert!(!second.is_current());
    assert_eq!(FileTree::read(path).unwrap().fingerprint(), second.fingerprint());

    // A directory that has just changed is read at each look.
    fs::create_dir(path.join("2")).unwrap();
    let recent = FileTree::read(path).unwrap();
    assert!(!recent.is_current());
    assert_ne!(recent.fingerprint(), second.fingerprint());
    fs::remove_dir(path.join("2")).unwrap();
    assert_eq!(FileTree::read(path).unwrap().fingerprint(), second.fingerprint());
}

#[test]
fn targets_of_links_are_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let (model, target) = (dir.path().join("m"), dir.path().join("target"));
    fs::create_dir(&model).unwrap();
    fs::write(&target, "abc").unwrap();
    symlink(&target, model.join("model")).unwrap();
    symlink(".", model.join("loop")).unwrap();
    symlink("nowhere", model.join("dangling")).unwrap();
    age(&model);
    let first = FileTree::read(&model).unwrap();
    assert!(first.is_current() && first.has_links());
    fs::write(&target, "abcd").unwrap();
    assert!(!first.is_current());
    assert!(FileTree::read(&dir.path().join("none")).is_err());
}
