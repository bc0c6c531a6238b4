//! Unit tests of `strings.rs`.

use super::*;

fn framed(strings: &[&[u8]]) -> Vec<u8> {
    strings.iter().flat_map(|s| [&(s.len() as u32).to_le_bytes()[..], s].concat()).collect()
}

#[test]
fn elements_are_split_by_length() {
    let bytes = framed(&[b"a\0b", b"", b"xyz"]);
    let cut: Vec<_> = split_elements(&bytes).map(Result::unwrap).collect();
    assert_eq!(cut, [&b"a\0b"[..], b"", b"xyz"]);
    assert_eq!(split_elements(&[]).count(), 0);
}

#[test]
fn broken_framing_ends_with_one_error() {
    let mut bytes = framed(&[b"ab"]);
    bytes.extend([9, 0, 0, 0, b'x']);
    let cut: Vec<_> = split_elements(&bytes).collect();
    assert_eq!(cut, [Ok(&b"ab"[..]), Err((9, 1))]);
    assert_eq!(split_elements(&[1, 0]).collect::<Vec<_>>(), [Err((4, 2))]);
    assert_eq!(
        split_elements(&[255, 255, 255, 255]).collect::<Vec<_>>(),
        [Err((u32::MAX as usize, 0))]
    );
}

#[test]
fn number_of_elements_must_match_shape() {
    let bytes = framed(&[b"a", b""]);
    assert_eq!(check_elements("s", &[1, 2], &bytes), Ok(2));
    assert_eq!(check_elements("s", &[0], &[]), Ok(0));
    let refusal = |shape: &[i64], bytes: &[u8]| check_elements("s", shape, bytes).unwrap_err().text;
    assert!(refusal(&[3], &bytes).contains("elements 2 for inference input 's', expecting 3"));
    assert!(refusal(&[2], &bytes[..6]).contains("expecting 4 bytes but only 1 are left"));
    assert!(refusal(&[i64::MAX, 9], &bytes).contains("too large"));
    assert_eq!(
        (count_elements(split_elements(&bytes)), count_elements(split_elements(&bytes[..6]))),
        (Some(2), None)
    );
}
