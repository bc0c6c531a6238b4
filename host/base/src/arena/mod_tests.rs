//! Unit tests of `mod.rs` and `blocks.rs`: allocation, references of the reader, resident memory.

use super::blocks::MAX_RESIDENT;
use super::*;

fn arena() -> Arc<Arena> {
    Arena::new("test", 1 << 30).unwrap()
}

fn fill(block: &ArenaBlock, value: u8) {
    // SAFETY: the block is the test's.
    unsafe { block.ptr.write_bytes(value, block.len) };
}

fn read(block: &ArenaBlock) -> &[u8] {
    // SAFETY: the test owns the block, which is mapped and has `len` bytes.
    unsafe { std::slice::from_raw_parts(block.ptr.as_ptr(), block.len) }
}

#[test]
fn blocks_are_aligned_zeroed_and_reused() {
    let arena = arena();
    for len in [0, 1, 256, 257, 100_000] {
        let block = arena.alloc(len, true).unwrap();
        assert!(block.ptr.as_ptr().addr().is_multiple_of(64));
        assert_eq!(read(&block), vec![0; len]);
        fill(&block, 7);
        let at = block.ptr;
        drop(block);
        let reused = arena.alloc(len, false).unwrap();
        assert_eq!((reused.ptr, read(&reused)), (at, &vec![7; len][..]));
        drop(reused);
        assert_eq!(read(&arena.alloc(len, true).unwrap()), vec![0; len]);
    }
    assert!(arena.alloc(2 << 30, true).is_none());
    assert!(arena.alloc(usize::MAX, true).is_none());
}

#[test]
fn block_that_the_reader_references_is_not_reused() {
    let owner = arena();
    let reader = ArenaReader::new(&owner.file().try_clone_to_owned().unwrap()).unwrap();
    let block = owner.alloc(1000, true).unwrap();
    fill(&block, 3);
    let at = block.ptr;
    // Two responses in one block, as of a scattered batch.
    let shared = [0, 500].map(|from| owner.share(&read(&block)[from..from + 500]).unwrap());
    drop(block);
    let [a, b] = shared.map(|s| reader.bytes(s.offset, 500, Some(s.slot)).unwrap());
    assert_eq!((a.as_ref(), b.as_ref()), (&[3; 500][..], &[3; 500][..]));
    assert_ne!(owner.alloc(1000, false).unwrap().ptr, at);
    drop(a);
    let held = owner.alloc(1000, false).unwrap();
    assert_ne!(held.ptr, at);
    drop(b);
    let found = [owner.alloc(1000, false).unwrap(), owner.alloc(1000, false).unwrap()];
    assert!(found.iter().any(|b| b.ptr == at));
}

#[test]
fn reader_rejects_ranges_outside_the_file() {
    let owner = arena();
    let reader = ArenaReader::new(&owner.file().try_clone_to_owned().unwrap()).unwrap();
    for (offset, len) in [(0, 1), (u64::MAX, 1), (TABLE as u64, u64::MAX), (1 << 40, 1)] {
        assert!(reader.bytes(offset, len, None).is_err(), "{offset} {len}");
    }
    assert!(reader.bytes(TABLE as u64, 1, Some(u32::MAX)).is_err());
    assert!(owner.find_offset(b"outside").is_none());
    assert!(owner.share(b"outside").is_none());
}

#[test]
fn free_pages_return_to_the_system() {
    let arena = arena();
    let touched = || touched(&arena);
    let blocks: Vec<_> = (0..4).map(|_| arena.alloc(MAX_RESIDENT, false).unwrap()).collect();
    blocks.iter().for_each(|b| fill(b, 1));
    assert!(touched() >= 4 * MAX_RESIDENT);
    drop(blocks);
    assert!(touched() <= MAX_RESIDENT + (1 << 20), "{}", touched());
    let blocks: Vec<_> = (0..4).map(|_| arena.alloc(MAX_RESIDENT, true).unwrap()).collect();
    assert!(blocks.iter().all(|b| read(b).iter().all(|byte| *byte == 0)));
}

fn touched(arena: &Arena) -> usize {
    rustix::fs::fstat(&arena.file).unwrap().st_blocks as usize * 512
}

#[test]
fn allocations_of_other_sizes_free_released_blocks() {
    let owner = arena();
    let reader = ArenaReader::new(&owner.file().try_clone_to_owned().unwrap()).unwrap();
    let held: Vec<_> = (0..16)
        .map(|_| {
            let block = owner.alloc(MAX_RESIDENT / 4, false).unwrap();
            fill(&block, 1);
            let shared = owner.share(read(&block)).unwrap();
            reader.bytes(shared.offset, block.len() as u64, Some(shared.slot)).unwrap()
        })
        .collect();
    assert!(touched(&owner) >= 4 * MAX_RESIDENT);
    drop(held);
    // Each allocation checks eight of the retained blocks.
    drop([owner.alloc(1, false), owner.alloc(1, false)]);
    assert!(touched(&owner) <= MAX_RESIDENT + (1 << 20), "{}", touched(&owner));
}

#[test]
fn space_carved_for_one_size_serves_others() {
    let arena = Arena::new("test", 64 << 20).unwrap();
    let of =
        |len: usize| -> Vec<ArenaBlock> { std::iter::from_fn(|| arena.alloc(len, true)).collect() };
    for len in [8 << 20, 100, 1 << 20, 5000, 64 << 20, 1 << 16, 16 << 20] {
        let blocks = of(len);
        assert!(!blocks.is_empty(), "{len}");
        for block in &blocks {
            assert!(read(block).iter().all(|byte| *byte == 0), "{len}");
            fill(block, 5);
        }
        // With all blocks in use, a small allocation needs a larger free block.
        let mut blocks = blocks;
        assert!(arena.alloc(1, false).is_none());
        blocks.truncate(blocks.len() / 2);
        let small = arena.alloc(1, true).unwrap();
        assert_eq!(read(&small), [0]);
        // It does not overlap an allocated block.
        assert!(blocks.iter().all(|b| read(b).iter().all(|byte| *byte == 5)), "{len}");
    }
}

#[test]
fn pages_of_cold_classes_are_released_first() {
    let arena = arena();
    let once = arena.alloc(MAX_RESIDENT, false).unwrap();
    fill(&once, 1);
    drop(once);
    for round in 0..200 {
        let block = arena.alloc(1 << 20, false).unwrap();
        let value = block.ptr;
        // SAFETY: the block is the test's.
        let kept = unsafe { value.read() };
        assert!(round < 100 || kept == 9, "released in round {round}");
        fill(&block, 9);
    }
    assert!(touched(&arena) <= MAX_RESIDENT, "{}", touched(&arena));
}

/// Many threads share and read, also parts of one block.
#[test]
fn blocks_are_not_reused_while_another_thread_reads_them() {
    let owner = Arena::new("test", 1 << 22).unwrap();
    let reader = ArenaReader::new(&owner.file().try_clone_to_owned().unwrap()).unwrap();
    let (sender, receiver) = std::sync::mpsc::sync_channel::<(Vec<SharedRange>, usize, u8)>(20);
    let reading = std::thread::spawn(move || {
        let mut held = std::collections::VecDeque::new();
        for (shared, len, value) in receiver {
            let bytes = shared.iter().map(|s| reader.bytes(s.offset, len as u64, Some(s.slot)));
            held.push_back((bytes.collect::<Result<Vec<_>>>().unwrap(), value));
            if held.len() > 40 {
                let (bytes, value) = held.pop_front().unwrap();
                assert!(bytes.iter().flatten().all(|byte| *byte == value));
            }
        }
    });
    let owners: Vec<_> = (0..3u8)
        .map(|n| {
            let (owner, sender) = (Arc::clone(&owner), sender.clone());
            std::thread::spawn(move || {
                let mut refused = 0;
                for i in 0..3000usize {
                    let (len, value) = (1 + (i * 7919) % 30_000, n.wrapping_add((3 * i) as u8));
                    let Some(block) = owner.alloc(len, false) else {
                        refused += 1;
                        continue;
                    };
                    fill(&block, value);
                    let half = len / 2;
                    let halves = [&read(&block)[..half], &read(&block)[len - half..]];
                    let shared: Vec<_> = halves.iter().map(|b| owner.share(b).unwrap()).collect();
                    if i % 17 == 0 {
                        shared.iter().for_each(|s| owner.unshare(s.slot));
                    } else {
                        drop(block);
                        sender.send((shared, half, value)).unwrap();
                    }
                }
                refused
            })
        })
        .collect();
    drop(sender);
    for thread in owners {
        assert!(thread.join().unwrap() < 2000);
    }
    reading.join().unwrap();
    // All references were released.
    assert!(owner.alloc((1 << 22) - (1 << 12), true).is_some());
}
