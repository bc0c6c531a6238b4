//! Unit tests of `slab.rs`.

use super::*;
use std::collections::HashSet;

#[test]
fn tickets_are_unique() {
    let mut store = RequestSlab::default();
    let mut seen = HashSet::new();
    for burst in [1usize, 5, 6000, 3, 9000, 20] {
        let tickets: Vec<QueueTicket> = (0..burst)
            .map(|i| {
                let place = store.insert(i, 1, 0).unwrap();
                store.ticket(place)
            })
            .collect();
        assert_eq!(store.len(), burst);
        for (i, &ticket) in tickets.iter().enumerate() {
            assert!(seen.insert(ticket));
            let place = store.find(ticket).unwrap();
            assert_eq!(store.remove(place), Some(i));
            assert_eq!(store.find(ticket), None);
        }
        assert!(seen.iter().all(|&old| store.find(old).is_none()));
    }
    assert_eq!(store.nodes.len(), KEPT, "the places of a burst are given back");
}

#[test]
fn node_without_generations_is_not_reused() {
    let mut store = RequestSlab::default();
    let place = store.insert('a', 0, 0).unwrap();
    store[place].generation = u32::MAX;
    let last = store.ticket(place);
    store.remove(place);
    assert_ne!(store.insert('b', 0, 0).unwrap(), place);
    assert_eq!(store.find(last), None);
    assert_eq!(store.find(QueueTicket(u64::MAX)), None);
}
