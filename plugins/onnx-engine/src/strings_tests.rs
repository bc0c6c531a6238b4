//! Unit tests of `strings.rs`.

use super::*;

fn framed(strings: &[&[u8]]) -> Vec<u8> {
    strings.iter().flat_map(|s| [&(s.len() as u32).to_le_bytes()[..], s].concat()).collect()
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
    string_pointers(&mut buffer, &offsets, content.len());
    assert_eq!(buffer, framed(&strings));
}
