//! Unit tests of `table.rs`.

use super::*;

/// A struct that a later minor version has extended.
#[repr(C)]
struct Grown {
    size: u64,
    old: u64,
    new: Option<extern "C" fn()>,
}

#[test]
fn widened_zeroes_missing_fields_and_drops_unknown_ones() {
    // Memory behind the old struct is not read.
    let memory = [16u64, 7, 0xdead_beef];
    // SAFETY: the array is as large as the struct.
    let read = unsafe { widened(memory.as_ptr().cast::<Grown>(), 16).assume_init() };
    assert_eq!((read.size, read.old, read.new.is_none()), (16, 7, true));
    // Fields unknown to this host are dropped.
    let memory = [32u64, 7, 0, 9];
    // SAFETY: as above.
    let read = unsafe { widened(memory.as_ptr().cast::<Grown>(), 32).assume_init() };
    assert_eq!((read.size, read.old, read.new.is_none()), (32, 7, true));
}

/// Appending fields must not change the sizes of 1.0.
#[test]
fn sizes_of_1_0_are_fixed() {
    assert!(size_of::<PluginTable>() >= PLUGIN_TABLE_1_0);
    assert_eq!(size_of::<About>(), ABOUT_1_0, "descriptions grow into their reserved words");
}
