//! Unit tests of `scatter.rs`.

use super::*;

#[test]
fn strings_are_split_by_their_lengths() {
    let mut data = Vec::new();
    for s in ["", "ab", "xyz"] {
        strings::push(&mut data, s.as_bytes());
    }
    let cut = |data: &[u8], counts: &[usize]| split_strings(data, counts.iter().copied());
    assert_eq!(cut(&data, &[1, 0, 2]), Ok(vec![0..4, 4..4, 4..17]));
    data.push(9);
    assert_eq!(cut(&data, &[2, 1]), Ok(vec![0..10, 10..17]));
    assert_eq!(cut(&data, &[2, 2]), Err(StringFault::NoLength { available: 1 }));
    assert_eq!(cut(&data, &[1, 1]), Err(StringFault::TooMany { found: 3 }));
    assert_eq!(split_elements([2, 0, 1].into_iter(), 4), [0..8, 8..8, 8..12]);
}
