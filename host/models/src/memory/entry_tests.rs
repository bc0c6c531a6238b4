//! Unit tests of `entry.rs`.

use super::*;

#[test]
fn entries_of_one_holder_and_location_are_summed_up() {
    let mut memory = OwnerMemory::default();
    for entry in [
        MemoryEntry::cpu("a", 5),
        MemoryEntry::cpu("a", 7),
        MemoryEntry::cpu("b", 0),
        MemoryEntry::new("a", MemoryLocation::gpu(1), 3),
        MemoryEntry::new("b", MemoryLocation::gpu(1), 4),
        MemoryEntry::new("b", MemoryLocation::PINNED, 1),
    ] {
        memory.add(entry);
    }
    assert_eq!(memory.entries.len(), 4);
    assert_eq!(memory.entries[0], MemoryEntry::cpu("a", 12));
    let totals: Vec<_> = memory.totals().into_iter().collect();
    assert_eq!(totals, [(("CPU", 0), 12), (("CPU_PINNED", 0), 1), (("GPU", 1), 7)]);
    assert_eq!(memory.bytes(), 20);
}
