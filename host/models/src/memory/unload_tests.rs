//! Unit tests of `unload.rs`.

use super::*;
use crate::memory::MemoryEntry;
use trtserver_request::memory::MemoryLocation;

#[test]
fn difference_is_given_by_memory_type_and_device() {
    let memory = |entries: &[MemoryEntry]| {
        let mut memory = OwnerMemory::default();
        entries.iter().for_each(|entry| memory.add(*entry));
        memory
    };
    let before = memory(&[
        MemoryEntry::cpu("inputs", 100),
        MemoryEntry::new("reported", MemoryLocation::gpu(1), 50),
    ]);
    let left = memory(&[
        MemoryEntry::cpu("outputs", 30),
        MemoryEntry::new("reported", MemoryLocation::gpu(1), 50),
    ]);
    assert_eq!(given_back(&before.totals(), &left.totals()), "70 bytes of CPU 0");
    assert_eq!(describe_memory(&left), "30 bytes of CPU 0 (outputs), 50 bytes of GPU 1 (reported)");
    assert_eq!(given_back(&left.totals(), &before.totals()), "no bytes");
}
