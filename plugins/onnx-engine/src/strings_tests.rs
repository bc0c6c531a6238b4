//! Unit tests of `strings.rs`.

use super::*;

fn framed(strings: &[&[u8]]) -> Vec<u8> {
    strings.iter().flat_map(|s| [&(s.len() as u32).to_le_bytes()[..], s].concat()).collect()
}

#[test]
fn elements_are_split_by_length() {
    let bytes = framed(&[b"a\0b", b"", b"xyz"]);
    let cut: Vec<_> = elements(&bytes).map(Result::unwrap).collect();
    assert_eq!(cut, [&b"a\0b"[..], b"", b"xyz"]);
    assert_eq!(elements(&[]).count(), 0);
}

#[test]
fn broken_framing_ends_with_one_error() {
    let mut bytes = framed(&[b"ab"]);
    bytes.extend([9, 0, 0, 0, b'x']);
    let cut: Vec<_> = elements(&bytes).collect();
    assert_eq!(cut, [Ok(&b"ab"[..]), Err((9, 1))]);
    assert_eq!(elements(&[1, 0]).collect::<Vec<_>>(), [Err((4, 2))]);
    assert_eq!(elements(&[255, 255, 255, 255]).collect::<Vec<_>>(), [Err((u32::MAX as usize, 0))]);
}

#[test]
fn contents_are_spread_in_place() {
    let strings: [&[u8]; 5] = [b"", b"hello", b"a\0", b"", b"longer than the heads of them all"];
    let content = strings.concat();
    let mut offsets = vec![];
    let mut at = 0;
    for s in strings {
        offsets.push(at);
        at += s.len();
    }
    let mut buffer = vec![0xee; HEAD * strings.len()];
    buffer.extend(&content);
    spread(&mut buffer, &offsets, content.len());
    assert_eq!(buffer, framed(&strings));
}
