//! Unit tests of `overrides.rs`.

use super::*;

#[test]
fn files_are_in_a_private_directory_that_ends_with_its_last_user() {
    let files = [("1/model.onnx", "one"), ("1/assets/names.txt", "two"), ("labels.txt", "three")];
    let files =
        files.map(|(path, content)| (path.to_owned(), Bytes::from_static(content.as_bytes())));
    let overrides = LoadOverrides { config: None, files: files.to_vec() };
    let dir = overrides.directory().unwrap();
    let path = dir.path().to_owned();
    assert_eq!(fs::read_to_string(path.join("1/assets/names.txt")).unwrap(), "two");
    assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
    let user = Arc::clone(&dir);
    drop(dir);
    assert!(path.exists());
    drop(user);
    assert!(!path.exists());
    // A path that needs a file as a directory.
    let files = [("a", "one"), ("a/b", "two")];
    let files =
        files.map(|(path, content)| (path.to_owned(), Bytes::from_static(content.as_bytes())));
    let error = LoadOverrides { config: None, files: files.to_vec() }.directory().err().unwrap();
    assert!(error.message.starts_with("cannot write file 'a/b' of the load request: "), "{error}");
}

#[test]
fn paths_stay_below_the_directory() {
    for path in ["1/model.onnx", "labels.txt", "./1/m", "1/a/b"] {
        assert!(LoadOverrides::is_file_path(path), "{path}");
    }
    for path in ["", ".", "..", "../x", "1/../../x", "/etc/x", "1/", "a\0b"] {
        assert!(!LoadOverrides::is_file_path(path), "{path:?}");
    }
}
