//! Unit tests of `pool.rs`.

use super::*;

const S: u64 = 1_000_000_000;
const MIB: usize = 1 << 20;

fn free_bytes(pool: &Pool) -> usize {
    pool.lock().bytes
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
        assert_eq!(class_of(len).map(size_of_class), want, "{len}");
    }
    for class in 0..CLASSES {
        let size = size_of_class(class);
        assert_eq!(class_of(size), Some(class));
        assert!(class + 1 == CLASSES || size_of_class(class + 1) * 4 <= size * 5);
    }
    assert_eq!(class_of(MAX_SIZE), Some(CLASSES - 1));
}

#[test]
fn block_is_reused_for_its_size_class_only() {
    let pool = Pool::new(64 * MIB);
    let mut first = pool.take(MIB).unwrap();
    first.claim(3, false);
    // SAFETY: the test owns the block, which is longer than that.
    unsafe { first.ptr().cast::<[u8; 3]>().write([7; 3]) };
    let at = first.ptr();
    assert_eq!(pool.put(first, 0), Some(MAX_IDLE_NS));
    assert_ne!(pool.take(2 * MIB).unwrap().ptr(), at);
    let mut reused = pool.take(MIB - 100).unwrap();
    assert_eq!((reused.ptr(), free_bytes(&pool)), (at, 0));
    // SAFETY: as above.
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
    for (bound, put, want) in table {
        let pool = Pool::new(bound * MIB);
        let blocks: Vec<Pages> = put.iter().map(|n| pool.take(n * MIB).unwrap()).collect();
        for (block, now) in blocks.into_iter().zip(0..) {
            pool.put(block, now);
        }
        let free = pool.lock();
        let sizes = free.classes.iter().flatten().map(|block| block.pages.size() / MIB);
        assert_eq!(sizes.collect::<Vec<_>>(), want, "{put:?} into {bound}");
        assert_eq!(free.bytes, want.iter().sum::<usize>() * MIB);
    }
}

#[test]
fn trim_unmaps_idle_blocks() {
    let pool = Pool::new(64 * MIB);
    let blocks: Vec<Pages> = [1, 1, 2].iter().map(|n| pool.take(n * MIB).unwrap()).collect();
    let due: Vec<Option<u64>> =
        blocks.into_iter().zip(0..).map(|(block, s)| pool.put(block, s * S)).collect();
    assert_eq!(due, [Some(2 * S), None, None], "trim is scheduled once");
    // Time of the call, expected next time, MiB left.
    for (now, next, left) in [
        (2 * S - 1, Some(2 * S), 4),
        (2 * S, Some(3 * S), 3),
        (4 * S - 1, Some(4 * S), 2),
        (9 * S, None, 0),
        (10 * S, None, 0),
    ] {
        assert_eq!((pool.trim(now), free_bytes(&pool) / MIB), (next, left), "at {now}");
    }
    let block = pool.take(MIB).unwrap();
    assert_eq!(pool.put(block, 20 * S), Some(22 * S), "the next block schedules trim again");
}

#[test]
fn failed_allocation_unmaps_free_blocks() {
    let pool = Pool::new(64 * MIB);
    let block = pool.take(MIB).unwrap();
    pool.put(block, 0);
    assert!(pool.take(usize::MAX / 2).is_none());
    assert_eq!(free_bytes(&pool), 0, "free blocks are unmapped before an allocation fails");
    let large = pool.take(MAX_SIZE + 1).unwrap();
    assert_eq!((pool.put(large, 0), free_bytes(&pool)), (None, 0));
}
