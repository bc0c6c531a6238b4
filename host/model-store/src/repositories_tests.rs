//! Unit tests of `repositories.rs`.

use super::*;
use std::fs;
use trtserver_base::cancel_flag::CancelFlag;

#[test]
fn name_with_path_separator_has_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("m")).unwrap();
    let repositories =
        ModelRepositories::open(std::slice::from_ref(&root), &StoreSettings::default(), false)
            .unwrap();
    let found = repositories.find("m").unwrap();
    assert_eq!(found[0].materialise(&CancelFlag::default()).unwrap().path(), root.join("m"));
    for name in ["", ".", "..", "../root", "m/", "m/..", "/tmp", "m\0", "a\\b"] {
        assert!(repositories.find(name).unwrap().is_empty(), "{name:?}");
    }
}

#[test]
fn repository_that_cannot_be_listed_hides_no_model_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    fs::create_dir_all(one.join("m")).unwrap();
    fs::create_dir_all(two.join("m")).unwrap();
    let repositories =
        ModelRepositories::open(&[one.clone(), two], &StoreSettings::default(), false).unwrap();
    assert_eq!(repositories.list().models["m"].len(), 2);
    fs::remove_dir_all(one).unwrap();
    let listing = repositories.list();
    assert_eq!(listing.models["m"].len(), 1);
    assert_eq!(listing.failures.len(), 1, "{:?}", listing.failures);
}
