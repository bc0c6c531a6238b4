//! Unit tests of the table of operators.

use super::*;

#[test]
fn the_table_is_sorted_for_binary_search() {
    assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(TABLE.iter().all(|(name, _)| find(name).is_ok()));
}

#[test]
fn refusals_say_why() {
    let of = |kind| find(kind).err().unwrap();
    assert!(of("Int8Conv").contains("quantised"));
    assert!(of("XavierFill").contains("random"));
    assert!(of("ConvGradient").contains("training"));
    assert!(of("RoIAlign").contains("not supported"));
}
