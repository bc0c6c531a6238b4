//! Unit tests of `head_memory.rs`.

use super::*;
use crate::connections::Wire;

fn drawn(head: &HeadMemory) -> usize {
    head.reservation.as_ref().map_or(0, MemoryReservation::bytes)
}

#[test]
fn incomplete_head_is_drawn_beyond_the_first_buffer_until_the_response_is_ready() {
    let state = ConnectionState::alone(Wire::Http1);
    let mut head = HeadMemory::default();
    for (count, expected) in [(5000, 0), (3192, 0), (1000, 1000), (20_000, 21_000)] {
        head.read(&state, count);
        head.settle(&state).unwrap();
        assert_eq!(drawn(&head), expected);
    }
    head.read(&state, 10);
    state.head_arrived();
    // The body is counted where it is collected.
    head.read(&state, 50_000);
    head.settle(&state).unwrap();
    assert_eq!(drawn(&head), 21_000);
    state.body_arrived();
    head.settle(&state).unwrap();
    assert_eq!(drawn(&head), 21_000);
    state.responded();
    head.settle(&state).unwrap();
    assert_eq!((head.bytes, drawn(&head)), (0, 0));
}

#[test]
fn head_that_arrives_at_once_is_not_drawn_with_what_follows_it() {
    let state = ConnectionState::alone(Wire::Http1);
    let mut head = HeadMemory::default();
    for _ in 0..3 {
        // The head and the first part of a body.
        head.read(&state, 400_000);
        state.head_arrived();
        head.settle(&state).unwrap();
        state.body_arrived();
        head.settle(&state).unwrap();
        assert!(head.reservation.is_none());
        state.responded();
        state.wrote();
    }
    head.read(&state, 10_000);
    head.settle(&state).unwrap();
    assert_eq!(drawn(&head), 10_000 - FIRST_BUFFER);
}
