//! Unit tests of `search.rs`.

use super::*;

#[test]
fn a_named_library_is_the_only_candidate() {
    let dir = Path::new("/opt/x/backends/onnxruntime");
    let both = plan(Some("/a.so"), Some(OsStr::new("/b.so")), dir);
    assert!(
        matches!(both, Plan::Named { path, by } if path == Path::new("/a.so") && by.contains("library="))
    );
    let environment = plan(Some(""), Some(OsStr::new("/b.so")), dir);
    assert!(
        matches!(environment, Plan::Named { path, by } if path == Path::new("/b.so") && by.contains(VARIABLE))
    );
}

#[test]
fn search_starts_at_plugin_directory() {
    let Plan::Search { found, looked_in, system } =
        plan(None, Some(OsStr::new("")), Path::new("/nowhere/dist/backends/onnxruntime"))
    else {
        panic!("a library was named");
    };
    assert!(found.is_empty());
    assert_eq!(
        looked_in,
        [
            "/nowhere/dist/backends/onnxruntime",
            "/nowhere/dist/backends/onnxruntime/lib",
            "/nowhere/dist/lib"
        ]
        .map(PathBuf::from)
    );
    assert_eq!(system, ["libonnxruntime.so.1", "libonnxruntime.so"]);
}

#[test]
fn soname_before_link_before_highest_version() {
    let mut names = vec![
        "libonnxruntime.so.1.9.0",
        "libonnxruntime.so",
        "libonnxruntime.so.1.31.1",
        "libonnxruntime.so.1",
    ];
    names.sort_by_key(|name| std::cmp::Reverse(preference(name)));
    assert_eq!(
        names,
        [
            "libonnxruntime.so.1",
            "libonnxruntime.so",
            "libonnxruntime.so.1.31.1",
            "libonnxruntime.so.1.9.0"
        ]
    );
    assert_eq!(version_of("libonnxruntime_providers_shared.so"), None);
    assert_eq!(version_of("libonnxruntime.so.bak"), None);
}

#[test]
fn not_found_message_lists_directories_and_advice() {
    let text =
        not_found(&["/d/lib".into()], &["libonnxruntime.so.1"], &["/d/lib/x: bad ELF".into()]);
    for part in [
        "\n  /d/lib",
        "libonnxruntime.so.1",
        "bad ELF",
        "cargo xtask runtimes",
        "pip install onnxruntime",
        VARIABLE,
    ] {
        assert!(text.contains(part), "{part} missing in {text}");
    }
}
