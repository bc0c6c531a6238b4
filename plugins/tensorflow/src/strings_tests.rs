//! Unit tests of `strings.rs`.

use super::*;

/// One string of each form, as TensorFlow lays them out.
#[test]
fn all_forms_of_strings_are_read() {
    let text = b"a text longer than twenty-two bytes";
    let n = (text.len() as u64) << 2;
    let address = text.as_ptr().expose_provenance() as u64;
    let mut small = [0u8; SIZE];
    (small[0], small[1], small[2]) = (2 << 2, b'h', b'i');
    let words = |bytes: [u8; SIZE]| {
        [0, 8, 16].map(|at| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i])))
    };
    let mut inline = [0u8; SIZE];
    inline.copy_from_slice(b"contents of the offset..");
    let strings: [[u64; 3]; 6] = [
        words(small),
        [n | u64::from(LARGE), 48, address],
        [n | u64::from(VIEW), address, 0],
        // 8 bytes that start at the next string.
        [8 << 2 | u64::from(OFFSET) | (SIZE as u64) << 32, 1, 0],
        words(inline),
        [0, 0, 0],
    ];
    let data = strings.as_ptr().cast::<u8>();
    for (at, expected) in [&b"hi"[..], text, text, b"contents"].into_iter().enumerate() {
        // SAFETY: valid strings.
        assert_eq!(unsafe { string_contents(data, at) }, expected);
    }
    // SAFETY: the first two and the sixth of `data` are valid strings; the fifth, contents only, is
    // not read.
    let (last, size) = unsafe { (string_contents(data, 5), encoded_size(data, 2)) };
    assert_eq!((last, size), (&b""[..], 2 * HEAD + 2 + text.len()));
    let mut encoded = vec![0xee; size];
    // SAFETY: `data` points to at least two valid strings, and `encoded` has the size of both.
    unsafe { encode_strings(data, 2, &mut encoded) };
    let elements: Vec<_> = split_elements(&encoded).map(Result::unwrap).collect();
    assert_eq!(elements, [&b"hi"[..], text]);
}
