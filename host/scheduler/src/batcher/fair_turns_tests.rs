//! Unit tests of `fair_turns.rs`.

use super::*;

fn client(key: u64, weight: u32) -> ClientShare {
    ClientShare { key, weight }
}

#[test]
fn turns_follow_rows_and_weights() {
    let mut turns = FairTurns::default();
    let mut of = |key, weight, rows| turns.join(0, client(key, weight), rows);
    assert_eq!([of(1, 1, 1), of(1, 1, 4), of(1, 1, 1)], [0, ROW, 5 * ROW]);
    // With weight 2 each row takes half a turn.
    assert_eq!([of(2, 2, 1), of(2, 2, 1), of(2, 2, 1)], [0, ROW / 2, ROW]);
    turns.serve(0, 3 * ROW);
    // It begins where the level is, without credit.
    assert_eq!(turns.join(0, client(3, 1), 1), 3 * ROW);
    // Levels are independent.
    assert_eq!(turns.join(7, client(1, 1), 1), 0);
    assert_eq!((turns.len(0), turns.len(7), turns.len(8)), (7, 1, 0));
}

#[test]
fn clients_without_requests_are_forgotten() {
    let mut turns = FairTurns::default();
    turns.join(0, client(0, 1), 1);
    for key in 1..10_000 {
        let turn = turns.join(0, client(key, 1), 1);
        turns.serve(0, turn + ROW);
        turns.leave(0);
    }
    assert!(turns.levels[&0].ends.len() <= 2 + SLACK + 1, "{}", turns.levels[&0].ends.len());
    turns.leave(0);
    assert!(turns.levels.is_empty());
}

#[test]
fn clients_wait_for_their_own_backlog_and_as_much_of_others() {
    let mut turns = FairTurns::default();
    for _ in 0..100 {
        turns.join(1, client(1, 1), 1);
    }
    for _ in 0..10 {
        turns.join(1, client(2, 1), 1);
    }
    // 40 requests take as many turns as 10 of weight 1.
    for _ in 0..40 {
        turns.join(1, client(3, 4), 1);
    }
    turns.join(0, client(9, 1), 1);
    let found = [1, 2, 3, 4].map(|key| turns.ahead(1, key));
    assert_eq!(found, [151, 61, 61, 1]);
    assert_eq!([0, 2].map(|level| turns.ahead(level, 4)), [0, 151]);
    turns.serve(1, 5 * ROW);
    assert_eq!(turns.ahead(1, 4), 1, "it begins where the level is");
}
