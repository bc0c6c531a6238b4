//! Unit tests of `load_measure.rs`.

use super::*;

#[test]
fn load_alone_has_its_difference() {
    let mut group = LoadGroup::default();
    let result = group.begin(|| Some(1000)).unwrap();
    assert_eq!(result.get(), None);
    group.end(2, || Some(400));
    assert_eq!(result.get(), Some(&LoadGrowth { device: 2, bytes: 600, loads: 1 }));
    let next = group.begin(|| Some(400)).unwrap();
    group.end(2, || Some(500));
    assert_eq!(
        next.get(),
        Some(&LoadGrowth { device: 2, bytes: 0, loads: 1 }),
        "others freed more"
    );
}

#[test]
fn overlapping_loads_are_measured_together() {
    let mut group = LoadGroup::default();
    let first = group.begin(|| Some(1000)).unwrap();
    let second = group.begin(|| panic!("measured in the middle")).unwrap();
    group.end(0, || panic!("measured in the middle"));
    let third = group.begin(|| panic!("measured in the middle")).unwrap();
    group.end(0, || panic!("measured in the middle"));
    group.end(0, || Some(100));
    for result in [first, second, third] {
        assert_eq!(result.get(), Some(&LoadGrowth { device: 0, bytes: 900, loads: 3 }));
    }
}

#[test]
fn nothing_is_said_of_a_gpu_that_does_not_tell() {
    let mut group = LoadGroup::default();
    assert!(group.begin(|| None).is_none());
    let result = group.begin(|| Some(7)).unwrap();
    group.end(0, || None);
    assert_eq!(result.get(), None);
}
