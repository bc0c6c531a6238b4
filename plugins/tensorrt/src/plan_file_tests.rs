//! Unit tests of `plan_file.rs`.

use super::*;

fn header(format: u32, version: [u8; 4]) -> Vec<u8> {
    let mut bytes = TAG.to_le_bytes().to_vec();
    bytes.extend(format.to_le_bytes());
    bytes.resize(24, 0);
    bytes.extend(version);
    bytes
}

#[test]
fn header_gives_the_version_of_the_builder() {
    let built = parse(&header(0, [10, 16, 1, 11])).expect("a plan");
    assert_eq!(built, Header::Built(Version::new(10, 16, 1)));
    assert_eq!(built.major(), Some(10));
}

#[test]
fn old_plan_is_of_major_8() {
    let old = parse(b"ptrt then whatever the engine holds").expect("a plan");
    assert_eq!(old.major(), Some(8));
}

#[test]
fn plan_of_a_newer_format_has_no_version() {
    let newer = parse(&header(7, [0; 4])).expect("a plan");
    assert_eq!(newer, Header::Unknown { format: Some(7) });
    assert_eq!(newer.major(), None);
}

#[test]
fn other_files_are_refused_with_what_they_are() {
    let refusal = |bytes: &[u8]| parse(bytes).expect_err("no plan");
    assert!(refusal(b"").contains("empty"));
    assert!(refusal(&header(0, [10; 4])[..20]).contains("truncated: 20 bytes"));
    assert!(refusal(b"ftr").contains("text"));
    assert!(refusal(b"name: \"a model\"\n").contains("is text"));
    assert!(refusal(b"trtf\0\0\0\0........................").contains("byte order"));
    assert!(refusal(&[0x08, 0x07, 0x12, 0x01, 0x00]).contains("ONNX"));
    assert!(refusal(&[0xff; 28]).contains("[ff, ff, ff, ff]"));
    assert!(refusal(&[0xff; 3]).contains("truncated"));
}

#[test]
fn missing_file_is_named() {
    let fault = read_header(Path::new("/no/such/model.plan")).expect_err("no file");
    assert!(fault.text.contains("/no/such/model.plan"), "{fault}");
}
