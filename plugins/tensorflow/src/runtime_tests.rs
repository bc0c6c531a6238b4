//! Unit tests of `runtime.rs`.

use super::*;

#[test]
fn other_libraries_are_refused_with_reason() {
    let error = TensorFlowRuntime::open(Path::new("libc.so.6")).err().unwrap();
    assert!(error.contains("TF_Version"), "{error}");
    let error = TensorFlowRuntime::open(Path::new("/nowhere/libtensorflow_cc.so.2")).err().unwrap();
    assert!(error.contains("/nowhere/libtensorflow_cc.so.2"), "{error}");
}

#[test]
fn loaded_library_of_another_directory_is_found() {
    let maps = "7f00-7f01 r-xp 00000000 08:01 11 /usr/lib/libm.so.6\n\
                7f02-7f03 r-xp 00000000 08:01 12 /a b/libtensorflow_framework.so.2\n\
                7f04-7f05 rw-p 00000000 00:00 0 \n";
    let found = |path| loaded_elsewhere(Path::new(path), maps);
    assert_eq!(found("/c/libtensorflow_cc.so.2"), Some("/a b/libtensorflow_framework.so.2"));
    assert_eq!(found("/a b/libtensorflow_cc.so.2"), None);
    assert_eq!(loaded_elsewhere(Path::new("/c/libtensorflow_cc.so.2"), &maps[..50]), None);
}
