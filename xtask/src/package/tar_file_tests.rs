//! Unit tests of `tar_file.rs`.

use super::*;

#[test]
fn archive_has_directories_and_does_not_depend_on_order() {
    let mut files = vec![
        PackageFile::program("bin/server", "elf"),
        PackageFile::link("bin/alias", "server"),
        PackageFile::data("a/b/c.txt", "text"),
    ];
    let bytes = write_tar(&files).unwrap();
    files.reverse();
    assert_eq!(bytes, write_tar(&files).unwrap());
    let mut archive = tar::Archive::new(bytes.as_slice());
    let entries: Vec<_> = archive
        .entries()
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let path = entry.path_bytes().into_owned();
            (String::from_utf8(path).unwrap(), entry.header().mode().unwrap())
        })
        .collect();
    let expected = [
        ("a/", 0o755),
        ("a/b/", 0o755),
        ("a/b/c.txt", 0o644),
        ("bin/", 0o755),
        ("bin/alias", 0o777),
        ("bin/server", 0o755),
    ];
    assert_eq!(entries, expected.map(|(path, mode)| (path.to_owned(), mode)));
    assert_eq!(compress_gzip(&bytes).unwrap(), compress_gzip(&bytes).unwrap());
}
