//! Unit tests of `slots.rs`.

use super::*;

#[test]
fn lowest_index_of_all_instances_is_taken_first() {
    let mut slots = FreeSlots::new(2, 2);
    let mut held: Vec<SequenceSlot> = std::iter::from_fn(|| slots.take()).collect();
    let seen: Vec<_> = held.iter().map(|slot| (slot.instance(), slot.index())).collect();
    assert_eq!(seen, [(0, 0), (1, 0), (0, 1), (1, 1)]);
    assert_eq!((slots.held(), slots.any_free()), (4, false));

    for at in [3, 1, 0] {
        slots.release(held.remove(at));
        assert!(slots.any_free());
    }
    let retaken: Vec<SequenceSlot> = std::iter::from_fn(|| slots.take()).collect();
    let seen: Vec<_> = retaken.iter().map(|slot| (slot.instance(), slot.index())).collect();
    assert_eq!(seen, [(0, 0), (1, 0), (1, 1)]);
    for slot in held.into_iter().chain(retaken) {
        slots.release(slot);
    }
    assert_eq!(slots.held(), 0);
}

#[test]
fn released_slot_is_taken_before_a_fresh_one() {
    assert!(!FreeSlots::new(0, 1).any_free());
    let mut slots = FreeSlots::new(1, usize::MAX);
    assert!(slots.any_free());
    let first = slots.take().unwrap();
    let second = slots.take().unwrap();
    slots.release(first);
    let retaken = slots.take().unwrap();
    assert_eq!(retaken.index(), 0);
    slots.release(second);
    slots.release(retaken);
}

#[test]
fn without_instances_there_are_no_slots() {
    assert_eq!(FreeSlots::new(0, 4).take(), None);
    assert_eq!(FreeSlots::new(3, 0).take(), None);
}
