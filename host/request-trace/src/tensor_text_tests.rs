//! Unit tests of `tensor_text.rs`.

use super::*;

#[test]
fn elements_are_separated_by_commas() {
    let strings = [&3u32.to_le_bytes()[..], b"a\"b", &0u32.to_le_bytes()[..]].concat();
    let ints: Vec<u8> = [1i32, -2, 3].iter().flat_map(|n| n.to_le_bytes()).collect();
    let floats: Vec<u8> = [0.5f32, -1.0].iter().flat_map(|n| n.to_le_bytes()).collect();
    for (dtype, bytes, expected) in [
        ("INT32", &ints[..], "1,-2,3"),
        ("FP32", &floats, "0.5,-1"),
        ("UINT8", &[7, 255], "7,255"),
        ("INT8", &[255], "-1"),
        ("BOOL", &[0, 1, 2], "0,1,1"),
        ("BYTES", &strings, "\"a\"b\",\"\""),
        ("FP16", &[1, 2], ""),
        ("INT64", &[], ""),
    ] {
        assert_eq!(elements_text(dtype, bytes, 100), expected, "{dtype}");
    }
    assert_eq!(elements_text("UINT8", &[1; 100], 5), "1,1,1…");
    assert_eq!(dims_text(&[1, -1, 16]), "1,-1,16");
}

#[test]
fn strings_beyond_the_end_are_left_out() {
    let cut = [&9u32.to_le_bytes()[..], b"abc"].concat();
    assert_eq!(elements_text("BYTES", &cut, 100), "");
}
