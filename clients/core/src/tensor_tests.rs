//! Unit tests of `tensor.rs`.

use super::*;

#[test]
fn strings_are_encoded_and_decoded() {
    let encoded = encode_strings(["", "ab", "ü"]);
    assert_eq!(&encoded[..], b"\0\0\0\0\x02\0\0\0ab\x02\0\0\0\xc3\xbc");
    assert_eq!(decode_strings(&encoded).unwrap(), [&b""[..], b"ab", "ü".as_bytes()]);
}

#[test]
fn truncated_string_is_refused() {
    for encoded in [&b"\x04\0\0\0abc"[..], b"\x04\0", b"\0\0\0\0\xff\xff\xff\xffx"] {
        assert!(decode_strings(encoded).unwrap_err().message().contains("is truncated"));
    }
}

#[test]
fn class_is_parsed() {
    let class = Class::parse("0.998000:7:sev:en").unwrap();
    assert_eq!((class.label.as_str(), class.index, class.value), ("sev:en", 7, 0.998));
    assert_eq!(Class::parse("1e3:0").unwrap().label, "");
    assert!(Class::parse("0.998000").is_err());
    assert!(Class::parse("a:b:c").is_err());
}

#[test]
fn size_of_hostile_shapes_does_not_overflow() {
    assert_eq!(byte_size("FP32", &[2, 3]), Some(24));
    assert_eq!(byte_size("FP32", &[]), Some(4));
    assert_eq!(byte_size("FP32", &[i64::MAX, i64::MAX]), None);
    assert_eq!(byte_size("FP32", &[-1]), None);
    assert_eq!(byte_size("BYTES", &[1]), None);
}
