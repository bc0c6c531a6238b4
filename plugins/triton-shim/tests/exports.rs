//! What `libtritonserver.so` exports, and under which name it can be found.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tritonserver::names::{BACKEND, CACHE, ENTRY_POINTS, REPO_AGENT, SERVER};

/// The library, built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join("libtritonserver.so")
}

/// Names in a text that `is` accepts.
fn names(text: &str, is: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("TRITON") && is(word)).collect()
}

#[test]
fn backend_of_the_tests_calls_every_function_that_is_not_refused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let dir = root.join("../../tests/triton");
    let mut sources = String::new();
    for entry in std::fs::read_dir(&dir).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name == "contract.c" || name.starts_with("check") && name.ends_with(".c") {
            sources += &read(entry.path());
        }
    }
    let all = [BACKEND, SERVER, REPO_AGENT, CACHE].concat();
    let exported = |name: &str| all.contains(&name);
    let refused = read(root.join("src/unused_exports.rs"));
    let refused = names(&refused, exported);
    let header = read(dir.join("unused.h"));
    assert_eq!(names(&header, exported), refused, "unused.h");
    let called = |name: &str| {
        let call = format!("{name}(");
        let at = sources.match_indices(&call).map(|(at, _)| at);
        at.into_iter().any(|at| !sources[..at].ends_with("Error *"))
    };
    let missing: Vec<_> =
        all.iter().filter(|name| !refused.contains(**name) && !called(name)).collect();
    assert!(missing.is_empty(), "not called: {missing:?}");
}

#[test]
fn every_name_of_the_headers_is_exported_and_no_entry_point() {
    let lengths = [BACKEND, SERVER, REPO_AGENT, CACHE].map(<[_]>::len);
    assert_eq!(lengths, [91, 172, 12, 6]);
    let mut expected = [BACKEND, SERVER, REPO_AGENT, CACHE].concat();
    expected.sort_unstable();
    let mut exported = trtserver_library_file::read_exports(&library()).unwrap();
    exported.retain(|name| name.starts_with("TRITON"));
    assert_eq!(exported, expected);
    assert!(!exported.iter().any(|name| ENTRY_POINTS.contains(&name.as_str())));
}
