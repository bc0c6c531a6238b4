//! Unit tests of `table.rs`.

use super::*;

#[test]
fn columns_are_aligned_and_short_rows_are_filled() {
    let mut table = Table::new(&["row", "n"]);
    table.row(vec!["a".into(), "100".into()]);
    table.row(vec!["long".into()]);
    assert_eq!(table.aligned(), "row     n\na     100\nlong\n");
    assert_eq!(table.csv(), "row,n\na,100\nlong\n");
}

#[test]
fn median_ignores_an_outlier() {
    assert_eq!(median(&[3.0, 900.0, 1.0]), 3.0);
    assert_eq!(spread(&[2.0, 4.0, 3.0]), 2.0 / 3.0);
}
