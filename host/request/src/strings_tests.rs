//! Unit tests of `strings.rs`.

use super::*;

#[test]
fn malformed_strings_are_classified() {
    let mut two = Vec::new();
    push_string(&mut two, b"ab");
    push_string(&mut two, b"");
    let stray = [&two[..], &[1, 2, 3]].concat();
    let cases: &[(&[u8], usize, Result<usize, StringFault>)] = &[
        (&two, 2, Ok(10)),
        (&stray, 2, Ok(10)),
        (&two, 3, Err(StringFault::TooFew { found: 2 })),
        (&two, 1, Err(StringFault::TooMany { found: 2 })),
        (&two[..7], 2, Err(StringFault::NoLength { available: 1 })),
        (&two[..5], 1, Err(StringFault::Short { length: 2, available: 1 })),
        (&[], 0, Ok(0)),
        (&[1, 2, 3], 0, Ok(0)),
        (&[255, 255, 255, 255, 0], 1, Err(StringFault::Short { length: 4294967295, available: 1 })),
    ];
    for (data, expected, want) in cases {
        assert_eq!(check_strings(data, *expected), *want, "{data:?}");
    }
    assert_eq!(string_elements(&two).collect::<Vec<_>>(), [b"ab".as_slice(), b""]);
}
