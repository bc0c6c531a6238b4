//! Unit tests of `refit.rs`.

use super::*;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

#[test]
fn tensors_of_a_file_have_type_count_and_position() {
    let header =
        r#"{"__metadata__":{"by":"test"},"w":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}}"#;
    let file = file(header, &[0; 12]);
    let tensors = parse_weights(&file).expect("a file");
    let begin = 8 + header.len();
    let expected = WeightTensor { name: "w".into(), kind: 1, count: 6, bytes: begin..begin + 12 };
    assert_eq!(tensors, [expected]);
}

#[test]
fn malformed_files_are_refused() {
    let refused = |file: Vec<u8>| parse_weights(&file).expect_err("malformed");
    assert!(refused(b"short".to_vec()).contains("safetensors"));
    assert!(refused(u64::MAX.to_le_bytes().to_vec()).contains("safetensors"));
    assert!(refused(file("{", b"")).contains("safetensors"));
    let truncated = r#"{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#;
    assert!(refused(file(truncated, &[0; 8])).contains("'w'"));
    let other = r#"{"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}"#;
    assert!(refused(file(other, &[0; 8])).contains("'F64'"));
    let beyond = r#"{"w":{"dtype":"I8","shape":[1],"data_offsets":[18446744073709551615,8]}}"#;
    assert!(refused(file(beyond, &[0; 8])).contains("malformed"));
}
