//! Unit tests of `unload.rs`.

use super::*;
use crate::memory::Entry;
use trtserver_request::memory::Location;

#[test]
fn difference_is_given_by_memory_type_and_device() {
    let memory = |entries: &[Entry]| {
        let mut memory = OwnerMemory::default();
        entries.iter().for_each(|entry| memory.add(*entry));
        memory
    };
    let before = memory(&[Entry::cpu("inputs", 100), Entry::new("reported", Location::gpu(1), 50)]);
    let left = memory(&[Entry::cpu("outputs", 30), Entry::new("reported", Location::gpu(1), 50)]);
    assert_eq!(given_back(&before.totals(), &left.totals()), "70 bytes of CPU 0");
    assert_eq!(list(&left), "30 bytes of CPU 0 (outputs), 50 bytes of GPU 1 (reported)");
    assert_eq!(given_back(&left.totals(), &before.totals()), "no bytes");
}
