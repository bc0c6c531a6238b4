//! Unit tests of `library.rs` that need no library.

use super::*;

#[test]
fn old_releases_are_refused() {
    assert_eq!(expect_version("2026.4.1-22982-85af7d2e43e"), Ok(()));
    assert_eq!(expect_version("2025.0.0-17942"), Ok(()));
    // A build of one's own need not have a number.
    assert_eq!(expect_version("custom_master_abc"), Ok(()));
    let refused = expect_version("2024.3.0-16041-1e3b88e4e3f").unwrap_err();
    assert_eq!(refused, "it is OpenVINO 2024.3.0, and this plugin needs 2025.0 or newer");
}

#[test]
fn another_library_is_told_apart() {
    let system = Path::new("libc.so.6");
    let refused = OpenVino::open(system).err().unwrap();
    assert!(refused.contains("not OpenVINO at all") && refused.contains("ov_core_create"));
}
