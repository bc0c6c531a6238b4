//! Unit tests of `base64_text.rs`.

use super::*;

#[test]
fn lines_and_missing_padding_are_read() {
    let (hello, one): (&[u8], &[u8]) = (b"hello, world", b"h");
    for (text, expected) in [
        ("aGVsbG8sIHdvcmxk", Ok(hello)),
        ("aGVsbG8s\nIHdvcmxk\n", Ok(hello)),
        ("aGVs\r\nbG8s\r\nIHdv\r\ncmxk", Ok(hello)),
        (" aGVsbG8s\tIHdvcmxk ", Ok(hello)),
        ("aA==", Ok(one)),
        ("aA", Ok(one)),
        ("aA=", Ok(one)),
        ("aA\n==\n", Ok(one)),
        // Bits beyond the last byte.
        ("aB", Ok(one)),
        ("", Ok(&[][..])),
        ("\n", Ok(&[][..])),
        ("%%%", Err("file: it is not base64: Invalid symbol 37, offset 0.")),
        ("aGVs-_==", Err("file: it is not base64: Invalid symbol 45, offset 4.")),
        ("aA==aA==", Err("file: it is not base64: Invalid symbol 61, offset 2.")),
        ("a", Err("file: it is not base64: Invalid input length: 1")),
    ] {
        let decoded = decode_base64(text.as_bytes(), || "file".into()).map_err(|e| e.message);
        assert_eq!(decoded.as_deref().map_err(String::as_str), expected, "{text:?}");
    }
}
