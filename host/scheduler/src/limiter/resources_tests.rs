//! Unit tests of `resources.rs`.

use super::*;
use ResourceScope::{Device, Global};

fn table(counts: &[(&str, u64, Option<i32>)]) -> ResourceTable {
    let count = |(name, count, device): &(&str, u64, Option<i32>)| ResourceCount {
        name: (*name).to_owned(),
        count: *count,
        device: *device,
    };
    ResourceTable::new(counts.iter().map(count).collect())
}

#[test]
fn counts_of_the_flags() {
    let given = table(&[("a", 4, None), ("a", 6, Some(1)), ("b", 2, Some(10))]);
    for (name, scope, count) in [
        ("a", Device(0), 4),
        ("a", Device(1), 6),
        ("b", Device(10), 2),
        // It is given for another device only.
        ("b", Device(0), 0),
        // For a global resource the device does not matter.
        ("b", Global, 2),
        ("a", Global, 6),
        // Once a flag names a resource, the others have none.
        ("c", Global, 0),
    ] {
        assert_eq!(given.explicit_count(name, scope), Some(count), "{name} {scope:?}");
    }
    assert_eq!(table(&[]).explicit_count("a", Global), None);
}

#[test]
fn too_small_counts_are_refused_with_the_numbers() {
    let given = table(&[("resource1", 3, None)]);
    given.check("m", "resource1", Device(0), 3).unwrap();
    let error = given.check("m", "resource1", Device(0), 4).unwrap_err().message;
    for part in [
        "Resource count for \"resource1\" is limited to 3 which will prevent scheduling of one or more model instances, the minimum required count is 4",
        "--rate-limit-resource=resource1:4",
        "model 'm'",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn largest_demand_is_the_capacity() {
    let mut table = table(&[]);
    let small = table.add_demand("a", Device(0), 2);
    let large = table.add_demand("a", Device(0), 5);
    let other = table.add_demand("a", Device(1), 9);
    assert_eq!((small.0, table.count()), (large.0, 2));
    let capacity = |table: &ResourceTable, row: usize| table.row(row).map(|row| row.capacity);
    assert_eq!(capacity(&table, large.0), Some(5));
    assert!(table.fits(&[large]) && !table.fits(&[(large.0, 6)]));
    table.take(&[small]);
    assert!(!table.fits(&[large]) && table.fits(&[(large.0, 3), other]));
    table.give_back(&[small]);
    table.remove_demand(large);
    assert_eq!(capacity(&table, small.0), Some(2));
    table.remove_demand(small);
    assert_eq!((capacity(&table, small.0), table.count()), (None, 1));
    // The row is used again.
    assert_eq!(table.add_demand("b", Global, 1).0, small.0);
}
