//! The pool against tables: sizes, bounds, what is used again, what leaves when.

use super::*;

const S: u64 = 1_000_000_000;
const MIB: usize = 1 << 20;

fn kept(pool: &Pool) -> usize {
    pool.lock().bytes
}

#[test]
fn sizes_waste_a_fifth_at_most() {
    for (len, want) in [
        (1, Some(LEAST)),
        (LEAST, Some(LEAST)),
        (LEAST + 1, Some(80 << 10)),
        ((80 << 10) + 1, Some(96 << 10)),
        (112 << 10, Some(112 << 10)),
        ((112 << 10) + 1, Some(128 << 10)),
        (16 * MIB, Some(16 * MIB)),
        (16 * MIB + 75, Some(20 * MIB)),
        (LARGEST, Some(LARGEST)),
        (LARGEST + 1, None),
        (usize::MAX, None),
    ] {
        assert_eq!(class_of(len).map(size_of_class), want, "{len}");
    }
    for class in 0..CLASSES {
        let size = size_of_class(class);
        assert_eq!(class_of(size), Some(class));
        assert!(class + 1 == CLASSES || size_of_class(class + 1) * 4 <= size * 5);
    }
    assert_eq!(class_of(LARGEST), Some(CLASSES - 1));
}

#[test]
fn a_block_is_used_again_by_its_size_only() {
    let pool = Pool::new(64 * MIB);
    let mut first = pool.take(MIB).unwrap();
    first.claim(3, false);
    // SAFETY: the block is this test's, and longer than that.
    unsafe { first.ptr().cast::<[u8; 3]>().write([7; 3]) };
    let at = first.ptr();
    assert_eq!(pool.put(first, 0), Some(AGE_NS));
    assert_ne!(pool.take(2 * MIB).unwrap().ptr(), at);
    let mut again = pool.take(MIB - 100).unwrap();
    assert_eq!((again.ptr(), kept(&pool)), (at, 0));
    // SAFETY: as above.
    let read = || unsafe { at.cast::<[u8; 4]>().read() };
    again.claim(2, false);
    assert_eq!(read(), [7, 7, 7, 0]);
    again.claim(2, true);
    assert_eq!(read(), [0, 0, 7, 0]);
    again.claim(MIB, true);
    assert_eq!(read(), [0; 4]);
}

#[test]
fn so_much_is_kept_and_no_more() {
    // Bound, what is put back in this order, what stays of it.
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
        let kept = pool.lock();
        let stay = kept.free.iter().flatten().map(|free| free.pages.size() / MIB);
        assert_eq!(stay.collect::<Vec<_>>(), want, "{put:?} into {bound}");
        assert_eq!(kept.bytes, want.iter().sum::<usize>() * MIB);
    }
}

#[test]
fn the_system_gets_back_what_is_not_used() {
    let pool = Pool::new(64 * MIB);
    let blocks: Vec<Pages> = [1, 1, 2].iter().map(|n| pool.take(n * MIB).unwrap()).collect();
    let due: Vec<Option<u64>> =
        blocks.into_iter().zip(0..).map(|(block, s)| pool.put(block, s * S)).collect();
    assert_eq!(due, [Some(2 * S), None, None], "one alarm is enough");
    // When it rings, when it wants to ring next, how much is left.
    for (now, next, left) in [
        (2 * S - 1, Some(2 * S), 4),
        (2 * S, Some(3 * S), 3),
        (4 * S - 1, Some(4 * S), 2),
        (9 * S, None, 0),
        (10 * S, None, 0),
    ] {
        assert_eq!((pool.trim(now), kept(&pool) / MIB), (next, left), "at {now}");
    }
    let block = pool.take(MIB).unwrap();
    assert_eq!(pool.put(block, 20 * S), Some(22 * S), "the next one starts anew");
}

#[test]
fn what_is_not_there_is_not_there() {
    let pool = Pool::new(64 * MIB);
    let block = pool.take(MIB).unwrap();
    pool.put(block, 0);
    assert!(pool.take(usize::MAX / 2).is_none());
    assert_eq!(kept(&pool), 0, "what is kept is given up before a request is refused");
    let large = pool.take(LARGEST + 1).unwrap();
    assert_eq!((pool.put(large, 0), kept(&pool)), (None, 0));
}
