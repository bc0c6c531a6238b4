//! Unit tests of `key.rs`.

use super::*;

#[test]
fn key_is_a_file_name_with_an_optional_slash() {
    for (key, file) in [
        ("/region", "/dev/shm/region"),
        ("region", "/dev/shm/region"),
        ("/a b.c", "/dev/shm/a b.c"),
        ("..hidden", "/dev/shm/..hidden"),
        ("%2f", "/dev/shm/%2f"),
        ("/ü", "/dev/shm/ü"),
    ] {
        assert_eq!(key_path(key), Ok(PathBuf::from(file)), "{key}");
    }
    assert!(key_path(&"n".repeat(255)).is_ok());
}

#[test]
fn key_outside_of_the_folder_is_refused() {
    let long = "n".repeat(256);
    for key in
        ["", "/", ".", "/.", "..", "/..", "//a", "a/", "/a/b", "../a", "/../a", "a\0b", &long]
    {
        assert!(key_path(key).is_err(), "{key}");
    }
}

#[test]
fn reserved_prefix_is_found_behind_slashes() {
    for (key, reserved) in [
        ("triton_python_backend_shm_region_1", true),
        ("/triton_python_backend_shm_region_", true),
        ("//triton_python_backend_shm_region_x", true),
        ("/triton_python_backend_shm", false),
        ("/my_triton_python_backend_shm_region_", false),
        ("", false),
    ] {
        assert_eq!(is_reserved(key), reserved, "{key}");
    }
}
