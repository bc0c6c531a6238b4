//! Unit tests of `dtype.rs`.

use super::*;

#[test]
fn table_is_ordered_by_number() {
    for (i, row) in TABLE.iter().enumerate() {
        assert_eq!(row.0.number() as usize, i + 1);
        assert_eq!(DType::from_number(row.0.number()), Some(row.0));
        assert_eq!(DType::from_v2_name(row.1), Some(row.0));
        let proto = Proto::from_str_name(row.2).unwrap();
        assert_eq!(DType::from_proto(proto), Some(row.0));
    }
    assert_eq!(DType::from_number(0), None);
    assert_eq!(DType::from_number(15), None);
}
