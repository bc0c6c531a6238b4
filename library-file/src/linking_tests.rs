//! Unit tests of `linking.rs`. The wire tests `backends::side_by_side` read real libraries.

use super::*;
use std::fs;
use tempfile::TempDir;

fn file(dir: &TempDir, path: &str, contents: &str, names: &[&str], unique: &[&str]) -> LinkedFile {
    let path = dir.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, contents).unwrap();
    let stamp = FileStamp::read(&path).unwrap();
    let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
    LinkedFile { path, stamp, names: owned(names), unique: owned(unique) }
}

fn linked(files: Vec<LinkedFile>) -> LinkedLibrary {
    LinkedLibrary { files, foreign: Vec::new() }
}

#[test]
fn soname_in_two_files_is_a_conflict_unless_contents_are_equal() {
    let dir = tempfile::tempdir().unwrap();
    let old = linked(vec![file(&dir, "1/libdep.so.1", "one", &["libdep.so.1"], &[])]);
    let new = linked(vec![file(&dir, "2/libdep.so.1", "two", &["libdep.so.1"], &[])]);
    let copy = linked(vec![file(&dir, "3/libdep.so.1", "one", &["libdep.so.1"], &[])]);
    let conflict = new.conflict(&old).unwrap().to_string();
    for part in ["2/libdep.so.1' and would get", "1/libdep.so.1'", "SONAME 'libdep.so.1'"] {
        assert!(conflict.contains(part), "{conflict}");
    }
    assert!(copy.conflict(&old).is_none() && old.conflict(&old).is_none());
    // The loaded file was replaced: a copy of the new file is not a copy of the loaded one.
    let new_file = file(&dir, "1/new", "three", &[], &[]);
    fs::rename(new_file.path, dir.path().join("1/libdep.so.1")).unwrap();
    assert!(copy.conflict(&old).is_some());
    assert!(new.conflict_with_mapped(&dir.path().join("1/libdep.so.1")).is_some());
    assert!(new.conflict_with_mapped(&dir.path().join("2/libdep.so.1")).is_none());
    assert!(new.conflict_with_mapped(&dir.path().join("2/libdep.so.1 (deleted)")).is_some());
    assert!(new.conflict_with_mapped(&dir.path().join("1/libother.so")).is_none());
}

#[test]
fn unique_symbol_in_two_files_is_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["1", "2"].map(|version| {
        linked(vec![file(
            &dir,
            &format!("{version}/libb.so"),
            version,
            &[],
            &["_ZN1a1bE", "_ZN1xE"],
        )])
    });
    let conflict = b.conflict(&a).unwrap().to_string();
    assert!(conflict.contains("the unique symbols _ZN1a1bE, _ZN1xE as well"), "{conflict}");
    let none = linked(vec![file(&dir, "3/libb.so", "3", &[], &[])]);
    assert!(none.conflict(&a).is_none() && none.is_self_contained() && !a.is_self_contained());
}

#[test]
fn test_program_needs_system_libraries_only() {
    let linked = LinkedLibrary::read(&std::env::current_exe().unwrap()).unwrap();
    assert!(linked.is_self_contained(), "{linked:?}");
}
