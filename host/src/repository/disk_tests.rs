//! Unit tests of `disk.rs`.

use super::*;

#[test]
fn name_with_path_separator_has_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let roots = [dir.path().join("root")];
    fs::create_dir_all(roots[0].join("m")).unwrap();
    assert_eq!(dirs(&roots, "m"), [roots[0].join("m")]);
    for name in ["", ".", "..", "../root", "m/", "m/..", "/tmp", "m\0", "a\\b"] {
        assert!(dirs(&roots, name).is_empty(), "{name:?}");
    }
}
