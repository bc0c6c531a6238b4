//! Unit tests of `table.rs`.

use super::*;

/// A struct as a later minor version might have it.
#[repr(C)]
struct Grown {
    size: u64,
    old: u64,
    new: Option<extern "C" fn()>,
}

#[test]
fn what_a_plugin_does_not_know_is_not_there() {
    // What lies behind an old struct is somebody else's.
    let memory = [16u64, 7, 0xdead_beef];
    // SAFETY: the array is as large as the struct.
    let read = unsafe { widened(memory.as_ptr().cast::<Grown>(), 16).assume_init() };
    assert_eq!((read.size, read.old, read.new.is_none()), (16, 7, true));
    // And what only a later host knows is cut off.
    let memory = [32u64, 7, 0, 9];
    // SAFETY: as above.
    let read = unsafe { widened(memory.as_ptr().cast::<Grown>(), 32).assume_init() };
    assert_eq!((read.size, read.old, read.new.is_none()), (32, 7, true));
}

/// Whoever appends to these leaves the first sizes alone.
#[test]
fn the_first_sizes() {
    assert!(size_of::<PluginTable>() >= PLUGIN_TABLE_1_0);
    assert_eq!(size_of::<About>(), ABOUT_1_0, "descriptions grow into their reserved words");
}
