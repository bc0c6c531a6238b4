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
