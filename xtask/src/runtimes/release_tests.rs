//! Unit tests of `runtimes/release.rs`.

use super::*;

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
    python::remove_dir(&directory).unwrap();
    fs::create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn library_of_other_size_is_incomplete() {
    let directory = directory("sizes");
    let release = Release {
        framework: "F",
        version: "1",
        requirements: "",
        platforms: &[],
        megabytes: 0,
        members: "",
        directories: false,
        libraries: &[("one.so", 3), ("two.so", 0)],
    };
    assert!(release.incomplete(&directory).is_some());
    fs::write(directory.join("one.so"), "ab").unwrap();
    fs::write(directory.join("two.so"), "").unwrap();
    let problem = release.incomplete(&directory).unwrap();
    assert!(problem.ends_with("one.so has 2 bytes, expected 3"), "{problem}");
    fs::write(directory.join("one.so"), "abc").unwrap();
    assert_eq!(release.incomplete(&directory), None);
    python::remove_dir(&directory).unwrap();
}

#[test]
fn link_replaces_links_and_keeps_files() {
    let directory = directory("links");
    let at = directory.join("lib.so.2");
    for target in ["/old", "/old", "/new"] {
        link(Path::new(target), &at).unwrap();
        assert_eq!(fs::read_link(&at).unwrap(), Path::new(target));
    }
    fs::remove_file(&at).unwrap();
    fs::write(&at, "an operator's").unwrap();
    link(Path::new("/new"), &at).unwrap();
    assert_eq!(fs::read_to_string(&at).unwrap(), "an operator's");
    python::remove_dir(&directory).unwrap();
}
