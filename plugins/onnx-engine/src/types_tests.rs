//! Unit tests of `types.rs`.

use super::*;

#[test]
fn the_table_is_indexed_by_the_interface_numbers() {
    for (at, row) in ROWS.iter().enumerate() {
        assert_eq!(row.dtype as usize, at + 1);
        assert_eq!(to_element(row.dtype), Some(row.element));
        assert_eq!(to_dtype(row.element as i32), row.dtype);
    }
    assert_eq!(to_element(dtype::INVALID), None);
    assert_eq!(to_element(99), None);
}

#[test]
fn unknown_element_types_have_a_name() {
    for foreign in [0, 14, 17, 21, 26, 1000, -1] {
        assert_eq!(to_dtype(foreign), dtype::INVALID);
        assert!(!element_name(foreign).is_empty());
    }
    assert_eq!(element_name(16), "TYPE_BF16");
}
