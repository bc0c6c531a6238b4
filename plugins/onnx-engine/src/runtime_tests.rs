//! Unit tests of `runtime.rs`.

use super::*;

#[test]
fn old_libraries_are_detected_by_version() {
    assert!(is_older("1.17.3", API));
    assert!(!is_older("1.18.0", API));
    assert!(!is_older("1.31.1", API));
    assert!(!is_older("2.0.0", API));
    assert!(!is_older("nightly", API));
    assert!(is_older("1.22.9", GPU_API) && !is_older("1.23.0", GPU_API));
}

#[test]
fn other_libraries_are_refused_with_reason() {
    let error = OnnxRuntime::open(Path::new("libc.so.6")).err().unwrap();
    assert!(error.contains("OrtGetApiBase"), "{error}");
    let error = OnnxRuntime::open(Path::new("/nowhere/libonnxruntime.so")).err().unwrap();
    assert!(error.contains("/nowhere/libonnxruntime.so"), "{error}");
}
