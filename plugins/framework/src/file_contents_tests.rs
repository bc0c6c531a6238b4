//! Unit tests of `file_contents.rs`.

use super::*;

fn explained(name: &str, bytes: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("contents-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let text = explain_contents(&path).unwrap_or_default();
    std::fs::remove_file(&path).unwrap();
    text
}

#[test]
fn what_is_not_a_model_is_told() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    for (name, bytes, expected) in [
        ("pointer", &pointer[..], "a Git LFS pointer"),
        ("page", b"\n<!DOCTYPE html><html>", "an HTML page"),
        ("refusal", b"{\"error\": \"not found\"}", "a text"),
        ("empty", b"", "the file is empty"),
        // Field 7 announces 5 bytes.
        ("cut", &[0x08, 8, 0x3a, 5, 1, 2], "truncated: it ends within a field, after 6 bytes"),
        ("noise", &[0xff; 40], "the file of 40 bytes is not an encoded protobuf message"),
        ("message", &[0x08, 8, 0x3a, 2, 1, 2], ""),
    ] {
        let text = explained(name, bytes);
        assert!(
            text.contains(expected) && text.is_empty() == expected.is_empty(),
            "{name}: {text}"
        );
    }
    assert_eq!(explain_contents(Path::new("/nowhere")), None);
    // Tests that run as root may read every file.
    let denied = explain_unopened(&ErrorKind::PermissionDenied.into()).unwrap_or_default();
    assert!(denied.contains("may not read the file"), "{denied}");
}
