//! Unit tests of `contents.rs`.

use super::*;

const UBJ: &[u8] = b"{L\0\0\0\0\0\0\0\x07learner{L\0\0\0\0\0\0\0\x01a[$d#L\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0L\0\0\0\0\0\0\0\x01b[#L\0\0\0\0\0\0\0\x01SL\0\0\0\0\0\0\0\x01xL\0\0\0\0\0\0\0\x01c[iZ]}}";

#[test]
fn forms_are_recognised_by_their_beginning() {
    for (head, expected) in [
        (&b"tree\nversion=v4\n"[..], Some(Format::LightGbm)),
        (b"tree\r\nversion=v3", Some(Format::LightGbm)),
        (b"{\"learner\":{}}", Some(Format::XgBoostJson)),
        (b"{\n  \"learner\": {}}", Some(Format::XgBoostJson)),
        (UBJ, Some(Format::XgBoostUbj)),
        (b"binf....", Some(Format::XgBoostBinary)),
        (b"{\"version\":[1]}", None),
        (b"trees", None),
        (b"", None),
    ] {
        assert_eq!(Format::recognise(head), expected, "{head:?}");
    }
}

#[test]
fn complete_files_pass() {
    for json in ["{\"learner\":[1,{\"a\":\"}\\\"]\"},NaN]}", "{\"learner\":{}}\n"] {
        assert_eq!(check_form(Format::XgBoostJson, json.as_bytes()), Ok(()));
    }
    assert_eq!(check_form(Format::XgBoostUbj, UBJ), Ok(()));
}

#[test]
fn every_truncation_of_ubjson_and_json_is_found() {
    for at in 0..UBJ.len() {
        let found = check_form(Format::XgBoostUbj, &UBJ[..at]).unwrap_err();
        assert!(found.contains(&format!("truncated: it ends within the model, after {at} bytes")));
    }
    let json = b"{\"learner\":[\"a\\\"\"]}";
    for at in 0..json.len() {
        let found = check_form(Format::XgBoostJson, &json[..at]).unwrap_err();
        assert!(found.contains("truncated"), "{found}");
    }
}

#[test]
fn damage_is_named() {
    let deep = "[".repeat(65);
    let mut long = UBJ.to_vec();
    long.push(b' ');
    for (format, bytes, expected) in [
        (Format::XgBoostJson, &b"{\"a\":[}]"[..], "byte 6 closes what is not open"),
        (Format::XgBoostJson, b"{} {", "the model ends at byte 2 and the file goes on for 2 bytes"),
        (Format::XgBoostJson, deep.as_bytes(), "more than 64 levels deep"),
        (Format::XgBoostUbj, b"{X", "byte 1 is 88 where a type was expected"),
        (Format::XgBoostUbj, b"{L\xff\0\0\0\0\0\0\x01a", "the length at byte 1 is negative"),
        (Format::XgBoostUbj, &long, "goes on for 1 bytes"),
    ] {
        let found = check_form(format, bytes).unwrap_err();
        assert!(found.contains(expected), "{found}");
    }
    let nested = b"{i\x01a".iter().chain([b'['].repeat(70).iter()).copied().collect::<Vec<u8>>();
    assert!(check_form(Format::XgBoostUbj, &nested).unwrap_err().contains("64 levels"));
}
