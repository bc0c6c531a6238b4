//! Unit tests of `thread_block.rs`.

use super::*;
use std::collections::BTreeSet;
use std::thread;

#[test]
fn pieces_are_aligned_zeroed_and_apart() {
    let lengths = [1, 64, 65, 1023, MAX_PIECE, 3, 128, 200];
    let mut pieces: Vec<BytesMut> = Vec::new();
    for round in 0..40 {
        for len in lengths {
            let mut piece = take_piece(len).unwrap();
            assert_eq!((piece.len(), piece.as_ptr().addr() % ALIGN), (len, 0));
            assert!(piece.iter().all(|byte| *byte == 0), "round {round}: {len} bytes");
            piece.fill(pieces.len() as u8 | 1);
            pieces.push(piece);
        }
        for (number, piece) in pieces.iter().enumerate() {
            assert!(piece.iter().all(|byte| *byte == number as u8 | 1), "round {round}: {number}");
        }
        // Some pieces live longer than later ones.
        pieces.truncate(round % 7);
    }
    assert!(take_piece(MAX_PIECE + 1).is_none());
}

#[test]
fn block_is_used_again_once_its_pieces_are_dropped() {
    let first = take_piece(1).unwrap();
    let begin = first.as_ptr().addr();
    drop(first);
    for _ in 0..10 * BLOCK / ALIGN {
        // Dropped by another thread at times.
        let piece = take_piece(ALIGN).unwrap().freeze();
        let at = piece.as_ptr().addr();
        assert!((begin..begin + BLOCK).contains(&at), "{at:#x} is not in the block of {begin:#x}");
        if at.is_multiple_of(16 * ALIGN) {
            thread::spawn(move || drop(piece)).join().unwrap();
        }
    }
}

#[test]
fn piece_that_is_in_use_at_the_end_of_a_block_costs_no_new_block() {
    // The other tests use the blocks of their own threads.
    thread::spawn(|| {
        // What is freed is taken at once, so that a new block has a new address.
        let (mut seen, mut freed) = (BTreeSet::new(), Vec::new());
        // A request holds its input while its output is allocated; whichever of them is the last one
        // of a block.
        for first in 0..2 {
            drop((0..first).map(|_| take_piece(ALIGN)).collect::<Vec<_>>());
            for _ in 0..4 * BLOCK / ALIGN {
                let [input, output] = [(); 2].map(|()| take_piece(ALIGN).unwrap());
                for piece in [&input, &output] {
                    seen.insert(piece.as_ptr().addr() / BLOCK);
                }
                drop((input, output));
                freed.push(Vec::<u8>::with_capacity(BLOCK));
            }
        }
        // A block that is not aligned to its size lies in two such ranges.
        assert!(seen.len() <= 4, "pieces of more than two blocks: {seen:x?}");
    })
    .join()
    .unwrap();
}
