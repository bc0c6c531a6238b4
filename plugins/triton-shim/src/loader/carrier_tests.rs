//! Unit tests of `carrier.rs`.

use super::*;
use trtserver_library_file::DynamicSection;

#[test]
fn renamed_libraries_are_recognised() {
    for name in ["libtritonserver-717102f0.so", "libtritonserver.so.2", "libtritonserver_x.so.1"] {
        assert!(is_renamed(name), "{name}");
    }
    for name in ["libtritonserver.so", "libtritonserverx.so", "libtriton_python.so", "libc.so.6"] {
        assert!(!is_renamed(name), "{name}");
    }
}

#[test]
fn image_is_a_library_that_needs_this_one() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), image("libtritonserver-1.so")).unwrap();
    assert!(image("libtritonserver-1.so").len() < 500);
    trtserver_library_file::check_library(file.path()).unwrap();
    assert_eq!(DynamicSection::read(file.path()).unwrap().needed, [SONAME]);
}
