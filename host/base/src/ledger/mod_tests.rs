//! Unit tests of `mod.rs`.

use super::*;

#[test]
fn holders_are_listed_in_the_order_of_their_numbers() {
    for (number, holder) in HOLDERS.into_iter().enumerate() {
        assert_eq!(holder as usize, number);
    }
    let names: std::collections::BTreeSet<_> = HOLDERS.map(LedgerHolder::name).into();
    assert_eq!(names.len(), HOLDERS.len());
}

#[test]
fn bytes_are_counted_per_owner_and_holder() {
    let [one, two] = [1, 2].map(|version| LedgerOwner::version("ledger test", version));
    let shared = LedgerOwner::model("ledger test");
    assert_eq!(one, LedgerOwner::version("ledger test", 1));
    assert!(one != two && shared != one && shared != two && one != LedgerOwner::SERVER);
    one.tag(LedgerHolder::Input).add(100);
    one.tag(LedgerHolder::Output).add(20);
    two.tag(LedgerHolder::Output).add(3);
    one.tag(LedgerHolder::Input).remove(40);
    assert_eq!((one.bytes(LedgerHolder::Input), one.total(), two.total()), (60, 80, 3));
    assert_eq!(shared.total(), 0);
}

#[test]
fn owners_keep_their_names_and_numbers() {
    let owners: Vec<LedgerOwner> =
        (0..200).map(|n| LedgerOwner::version("ledger names", n)).collect();
    let named = named_owners();
    for (n, owner) in (0..).zip(&owners) {
        let name = OwnerName { model: "ledger names".into(), version: Some(n) };
        assert_eq!(named.get(&name), Some(owner));
    }
}
