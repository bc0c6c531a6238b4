//! Unit tests of `text.rs`.

use super::*;

/// Every byte at every place of texts of up to three words, among ordinary ones that are close to
/// the special ones.
#[test]
fn first_special_byte_is_found() {
    let is_special = |byte: u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    for ordinary in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
        for length in 0..24 {
            assert_eq!(ordinary_bytes(&vec![ordinary; length]), length);
            for at in 0..length {
                for byte in 0..=255 {
                    let mut text = vec![ordinary; length];
                    text[at] = byte;
                    // One that follows does not count.
                    text.extend_from_slice(b"\"abc");
                    let want = if is_special(byte) { at } else { length };
                    assert_eq!(ordinary_bytes(&text), want, "{byte:#x} at {at} of {length}");
                }
            }
        }
    }
}
