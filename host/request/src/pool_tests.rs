//! Unit tests of `pool.rs`.

use super::*;

const S: u64 = 1_000_000_000;
const MIB: usize = 1 << 20;

fn free_bytes(pool: &BufferPool) -> usize {
    pool.lock().bytes
}

fn put(pool: &BufferPool, block: MappedPages, now_ns: u64) -> Option<u64> {
    pool.put(
        block,
        budget::request_memory().empty(trtserver_base::ledger::LedgerHolder::Input),
        now_ns,
    )
}

#[test]
fn resized_block_keeps_its_bytes_and_belongs_to_its_new_class() {
    let pool = BufferPool::new(64 * MIB);
    let mut block = pool.take(MIB).unwrap();
    // SAFETY: the test owns the block, which is longer than that.
    unsafe { block.ptr().cast::<[u8; 3]>().write([1, 2, 3]) };
    for (len, size) in
        [(9 * MIB + 1, 10 * MIB), (2 * MIB, 2 * MIB), (200 * MIB, 200 * MIB), (MIB, MIB)]
    {
        assert!(resize_pages(&mut block, len));
        assert_eq!(block.size(), size, "{len}");
        // SAFETY: the test owns the block, whose first bytes were written and moved along when it
        // was resized.
        assert_eq!(unsafe { block.ptr().cast::<[u8; 3]>().read() }, [1, 2, 3]);
    }
    put(&pool, block, 0);
    assert_eq!((free_bytes(&pool), pool.take(MIB).unwrap().size()), (MIB, MIB));
}

#[test]
fn size_classes_waste_at_most_a_fifth() {
    for (len, want) in [
        (1, Some(MIN_SIZE)),
        (MIN_SIZE, Some(MIN_SIZE)),
        (MIN_SIZE + 1, Some(80 << 10)),
        ((80 << 10) + 1, Some(96 << 10)),
        (112 << 10, Some(112 << 10)),
        ((112 << 10) + 1, Some(128 << 10)),
        (16 * MIB, Some(16 * MIB)),
        (16 * MIB + 75, Some(20 * MIB)),
        (MAX_SIZE, Some(MAX_SIZE)),
        (MAX_SIZE + 1, None),
        (usize::MAX, None),
    ] {
        assert_eq!(find_size_class(len).map(size_of_class), want, "{len}");
    }
    for class in 0..CLASSES {
        let size = size_of_class(class);
        assert_eq!(find_size_class(size), Some(class));
        assert!(class + 1 == CLASSES || size_of_class(class + 1) * 4 <= size * 5);
    }
    assert_eq!(find_size_class(MAX_SIZE), Some(CLASSES - 1));
}

#[test]
fn block_is_reused_for_its_size_class_only() {
    let pool = BufferPool::new(64 * MIB);
    let mut first = pool.take(MIB).unwrap();
    first.claim(3, false);
    // SAFETY: the test owns the block, which is longer than that.
    unsafe { first.ptr().cast::<[u8; 3]>().write([7; 3]) };
    let at = first.ptr();
    assert_eq!(put(&pool, first, 0), Some(MAX_IDLE_NS));
    assert_ne!(pool.take(2 * MIB).unwrap().ptr(), at);
    let mut reused = pool.take(MIB - 100).unwrap();
    assert_eq!((reused.ptr(), free_bytes(&pool)), (at, 0));
    // SAFETY: the test owns the reused block, which begins at `at` and is mapped and longer than
    // that.
    let read = || unsafe { at.cast::<[u8; 4]>().read() };
    reused.claim(2, false);
    assert_eq!(read(), [7, 7, 7, 0]);
    reused.claim(2, true);
    assert_eq!(read(), [0, 0, 7, 0]);
    reused.claim(MIB, true);
    assert_eq!(read(), [0; 4]);
}

#[test]
fn free_bytes_stay_within_bound() {
    // Bound, sizes put back in this order, sizes kept.
    let table: [(usize, &[usize], &[usize]); 5] = [
        (8, &[1, 1, 1], &[1, 1, 1]),
        (8, &[2, 2, 2], &[2, 2]),
        (8, &[8, 5, 4], &[4]),
        (8, &[1, 2, 3, 4], &[3, 4]),
        (0, &[1], &[]),
    ];
    for (bound, lens, want) in table {
        let pool = BufferPool::new(bound * MIB);
        let blocks: Vec<MappedPages> = lens.iter().map(|n| pool.take(n * MIB).unwrap()).collect();
        for (block, now) in blocks.into_iter().zip(0..) {
            put(&pool, block, now);
        }
        let free = pool.lock();
        let sizes = free.classes.iter().flatten().map(|block| block.pages.size() / MIB);
        assert_eq!(sizes.collect::<Vec<_>>(), want, "{lens:?} into {bound}");
        assert_eq!(free.bytes, want.iter().sum::<usize>() * MIB);
    }
}

#[test]
fn trim_unmaps_idle_blocks() {
    let pool = BufferPool::new(64 * MIB);
    let blocks: Vec<MappedPages> = [1, 1, 2].iter().map(|n| pool.take(n * MIB).unwrap()).collect();
    let due: Vec<Option<u64>> =
        blocks.into_iter().zip(0..).map(|(block, s)| put(&pool, block, s * S)).collect();
    assert_eq!(due, [Some(2 * S), None, None], "trim is scheduled once");
    // Time of the call, expected next time, MiB left.
    for (now, next, left) in [
        (2 * S - 1, Some(2 * S), 4),
        (2 * S, Some(3 * S), 3),
        (4 * S - 1, Some(4 * S), 2),
        (9 * S, None, 0),
        (10 * S, None, 0),
    ] {
        assert_eq!((pool.trim(now).1, free_bytes(&pool) / MIB), (next, left), "at {now}");
    }
    let block = pool.take(MIB).unwrap();
    assert_eq!(put(&pool, block, 20 * S), Some(22 * S), "the next block schedules trim again");
}

#[test]
fn failed_allocation_unmaps_free_blocks() {
    let pool = BufferPool::new(64 * MIB);
    let block = pool.take(MIB).unwrap();
    put(&pool, block, 0);
    assert!(pool.take(usize::MAX / 2).is_none());
    assert_eq!(free_bytes(&pool), 0, "free blocks are unmapped before an allocation fails");
    let large = pool.take(MAX_SIZE + 1).unwrap();
    assert_eq!((put(&pool, large, 0), free_bytes(&pool)), (None, 0));
}
