//! Unit tests of `types.rs`.

use super::*;

#[test]
fn types_of_both_sides_correspond() {
    for (ov, own) in ROWS {
        assert_eq!(to_element(ov), Element::Known(own));
        assert_eq!(from_dtype(own), Some(ov));
    }
    assert_eq!(from_dtype(dtype::STRING), None);
}

#[test]
fn other_types_are_named() {
    for (ov, expected) in [
        (0, "known in a run only"),
        (6, "less than 8 bits"),
        (14, "less than 8 bits"),
        (21, "8-bit float"),
        (23, "strings, which OpenVINO's C interface cannot return"),
        (25, "8-bit float"),
        (99, "element type 99"),
    ] {
        let Element::Foreign(name) = to_element(ov) else { panic!("{ov}") };
        assert!(name.contains(expected), "{name}");
    }
}

#[test]
fn numbers_that_need_more_than_32_bits_are_found() {
    let signed = |all: &[i64]| all.iter().flat_map(|own| own.to_le_bytes()).collect::<Vec<_>>();
    for (all, expected) in [
        (&[0, -1, 2_147_483_647, -2_147_483_648][..], None),
        (&[1, 2_147_483_648], Some("2147483648")),
        (&[-2_147_483_649], Some("-2147483649")),
        (&[], None),
    ] {
        assert_eq!(find_wide_number(dtype::INT64, &signed(all)).as_deref(), expected);
        assert_eq!(find_wide_number(dtype::FP64, &signed(all)), None);
    }
    assert_eq!(find_wide_number(dtype::UINT64, &signed(&[3, 2_147_483_647])), None);
    let found = find_wide_number(dtype::UINT64, &signed(&[-1]));
    assert_eq!(found.as_deref(), Some("18446744073709551615"));
}
