//! Unit tests of `flight.rs`: followers, results and hand-overs.

use super::*;

fn joined(flight: &Flight<&'static str>, name: &'static str) -> u64 {
    let ticket = flight.ticket();
    flight.join(ticket, name).unwrap();
    ticket
}

#[test]
fn followers_get_the_result_in_order() {
    let flight = Flight::new(0);
    joined(&flight, "a");
    let b = joined(&flight, "b");
    joined(&flight, "c");
    assert_eq!(flight.followers(), 3);
    assert_eq!(flight.leave(b), Some("b"));
    assert_eq!(flight.leave(b), None);
    assert_eq!(flight.land(), ["a", "c"]);
    assert_eq!(flight.join(flight.ticket(), "late"), Err("late"));
    assert_eq!(flight.land(), Vec::<&str>::new());
}

#[test]
fn ended_leader_hands_over() {
    let flight = Flight::new(0);
    joined(&flight, "a");
    joined(&flight, "b");
    assert_eq!(flight.leader_ended(), Handover::Lead("a"));
    // "a" waits in a queue.
    assert_eq!(flight.handed_over(), Handover::Later);
    joined(&flight, "c");
    assert_eq!(flight.leader_ended(), Handover::Lead("b"));
    // "b" ended before its submission returned: the same thread goes on.
    assert_eq!(flight.leader_ended(), Handover::Later);
    assert_eq!(flight.handed_over(), Handover::Lead("c"));
    assert_eq!(flight.leader_ended(), Handover::Later);
    assert_eq!(flight.handed_over(), Handover::Ended);
    assert_eq!(flight.join(flight.ticket(), "late"), Err("late"));
}

#[test]
fn leader_that_is_executed_at_once_lands() {
    let flight = Flight::new(0);
    joined(&flight, "a");
    joined(&flight, "b");
    assert_eq!(flight.leader_ended(), Handover::Lead("a"));
    assert_eq!(flight.land(), ["b"]);
    assert_eq!(flight.handed_over(), Handover::Later);
}

#[test]
fn leader_without_followers_ends_the_flight() {
    let flight = Flight::<&str>::new(0);
    assert_eq!(flight.leader_ended(), Handover::Ended);
}
