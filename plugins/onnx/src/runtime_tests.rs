//! Unit tests of `runtime.rs`.

use super::*;

#[test]
fn old_libraries_are_detected_by_version() {
    assert!(too_old("1.17.3"));
    assert!(!too_old("1.18.0"));
    assert!(!too_old("1.31.1"));
    assert!(!too_old("2.0.0"));
    assert!(!too_old("nightly"));
}

#[test]
fn other_libraries_are_refused_with_reason() {
    let error = Runtime::open(Path::new("libc.so.6")).err().unwrap();
    assert!(error.contains("OrtGetApiBase"), "{error}");
    let error = Runtime::open(Path::new("/nowhere/libonnxruntime.so")).err().unwrap();
    assert!(error.contains("/nowhere/libonnxruntime.so"), "{error}");
}

#[test]
fn a_named_library_has_no_fallback() {
    let plan = search::plan(Some("/nowhere/x.so"), None, Path::new("/nowhere"));
    let text = find(plan).err().unwrap().text;
    assert!(text.starts_with("ONNX Runtime library '/nowhere/x.so' (named by --backend-config"));
    assert!(text.contains("pip install onnxruntime"), "{text}");
}

#[test]
fn failed_search_lists_directories_and_reasons() {
    let root = std::env::temp_dir().join(format!("onnx-search-{}", std::process::id()));
    let (dir, lib) = (root.join("backends/onnxruntime"), root.join("lib"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::write(lib.join("libonnxruntime.so.1"), "no library").unwrap();
    std::fs::write(dir.join("libonnxruntime_providers_shared.so"), "another one").unwrap();
    let Plan::Search { found, looked_in, .. } = search::plan(None, None, &dir) else {
        panic!("a library was named");
    };
    assert_eq!(found, [lib.join("libonnxruntime.so.1")]);
    let text = find(Plan::Search { found, looked_in, system: vec!["libnowhere.so"] });
    let text = text.err().unwrap().text;
    std::fs::remove_dir_all(&root).unwrap();
    assert!(text.contains(&format!("\n  {}\n  {}", dir.display(), dir.join("lib").display())));
    assert!(text.contains("lib/libonnxruntime.so.1: "), "{text}");
    assert!(!text.contains("unusable: libnowhere"), "{text}");
}
