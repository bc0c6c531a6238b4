//! Unit tests of `ubjson.rs`. `contents_tests.rs` has damaged files.

use super::*;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize, PartialEq)]
struct Fields {
    list: Vec<i64>,
    #[serde(default)]
    absent: Vec<i64>,
    maybe: Option<String>,
}

#[test]
fn values() {
    for (bytes, expected) in [
        (&b"i\xff"[..], json!(-1)),
        (b"U\xff", json!(255)),
        (b"I\xff\xfe", json!(-2)),
        (b"l\x7f\xff\xff\xff", json!(i32::MAX)),
        (b"L\x80\0\0\0\0\0\0\0", json!(i64::MIN)),
        (b"d\x3f\xc0\0\0", json!(1.5)),
        (b"D\xbf\xf8\0\0\0\0\0\0", json!(-1.5)),
        (b"Z", json!(null)),
        (b"T", json!(true)),
        (b"SU\x02ab", json!("ab")),
        (b"[i\x01[]]", json!([1, []])),
        (b"[#U\x02i\x01T", json!([1, true])),
        (b"[$l#U\x02\0\0\0\x01\xff\xff\xff\xff", json!([1, -1])),
        (b"{U\x01a{U\x01bi\x02}U\x01c[]}", json!({ "a": { "b": 2 }, "c": [] })),
    ] {
        assert_eq!(read::<Value>(bytes).unwrap(), expected, "{bytes:?}");
    }
    let fields = b"{U\x05otherT\x55\x04list[$U#U\x01\x07U\x05maybeSU\x01x}";
    let read_fields: Fields = read(fields).unwrap();
    assert_eq!(read_fields, Fields { list: vec![7], absent: vec![], maybe: Some("x".to_owned()) });
}

#[test]
fn other_values_are_named() {
    for (bytes, expected) in [
        (&b"{U\x04listT}"[..], "invalid type: boolean `true`, expected a sequence"),
        (b"{}", "missing field `list`"),
        // A count of which the file has no room for an element each.
        (b"{U\x04list[#L\0\xff\xff\xff\xff\xff\xff\xff", "truncated"),
        (b"{U\x04list[$l#L\x7f\xff\xff\xff\xff\xff\xff\xff", "beyond the file"),
        (b"{U\x04list[$l]}", "where a type was expected"),
    ] {
        let text = read::<Fields>(bytes).unwrap_err().explain(bytes);
        assert!(text.contains(expected), "{text}");
    }
}
