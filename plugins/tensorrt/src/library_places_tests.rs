//! Unit tests of `library_places.rs`.

use super::*;

#[test]
fn full_library_comes_before_lean_and_dispatch() {
    let places = LibraryPlaces::new(None, Vec::new());
    let names: Vec<_> = places.candidates(10).iter().map(|p| p.display().to_string()).collect();
    assert_eq!(names, ["libnvinfer.so.10", "libnvinfer_lean.so.10", "libnvinfer_dispatch.so.10"]);
}

#[test]
fn setting_excludes_other_places() {
    let places = LibraryPlaces::new(Some("/a:/b"), vec!["/beside".into()]);
    assert_eq!(places.directories, [PathBuf::from("/a"), PathBuf::from("/b")]);
    assert!(!places.loader);
    assert_eq!(places.text(), "/a, /b");
    assert!(LibraryPlaces::new(Some(""), Vec::new()).loader);
}

#[test]
fn file_with_a_full_version_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in
        ["libnvinfer.so.10.16.1", "libnvinfer.so.8", "libnvinfer.so.100", "libnvinfer.so.10.x"]
    {
        std::fs::write(directory.path().join(name), "").expect("a file");
    }
    let setting = directory.path().display().to_string();
    let places = LibraryPlaces::new(Some(&setting), Vec::new());
    assert_eq!(places.candidates(10), [directory.path().join("libnvinfer.so.10.16.1")]);
    assert_eq!(places.candidates(11), Vec::<PathBuf>::new());
    assert_eq!(places.majors(&[8, 10, 11]), [10, 8]);
}
