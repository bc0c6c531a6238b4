//! What `libtritonserver.so` exports, and under which name it can be found.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use tritonserver::names::{BACKEND, CACHE, ENTRY_POINTS, REPO_AGENT, SERVER};

/// The library, built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join("libtritonserver.so")
}

#[test]
fn every_name_of_the_headers_is_exported_and_no_entry_point() {
    let lengths = [BACKEND, SERVER, REPO_AGENT, CACHE].map(<[_]>::len);
    assert_eq!(lengths, [91, 172, 12, 6]);
    let mut expected = [BACKEND, SERVER, REPO_AGENT, CACHE].concat();
    expected.sort_unstable();
    let mut exported = trtserver_library_file::exports(&library()).unwrap();
    exported.retain(|name| name.starts_with("TRITON"));
    assert_eq!(exported, expected);
    assert!(!exported.iter().any(|name| ENTRY_POINTS.contains(&name.as_str())));
}
