//! Unit tests of `connection.rs`.

use super::*;
use crate::unread::testing::limits;
use std::task::{Context, Poll, Waker};

const MIB: usize = 1 << 20;

#[test]
fn responses_above_the_limit_are_refused_until_others_are_read() {
    let connection = ConnectionUnread::new(limits(0, 4 * MIB));
    let first = connection.count_response(3 * MIB).unwrap();
    let refused = connection.count_response(2 * MIB).unwrap_err();
    assert_eq!(refused.code, Code::ResourceExhausted);
    assert_eq!(
        refused.message,
        "the client does not read its responses: 3145728 bytes of this connection are unread, this response of 2097152 \
         bytes would exceed the limit of 4194304 bytes (--max-unread-per-connection)"
    );
    assert_eq!(connection.bytes(), 3 * MIB);
    drop(first);
    // A response that exceeds the limit on its own is sent.
    let large = connection.count_response(9 * MIB).unwrap();
    assert!(connection.is_half_full() && connection.count_response(1).is_err());
    drop(large);
    assert_eq!((connection.bytes(), connection.read()), (0, 12 * MIB as u64));
}

#[test]
fn bytes_are_drawn_from_the_budget_and_given_back() {
    let connection = ConnectionUnread::new(limits(0, usize::MAX));
    let drawn = || connection.drawn.lock().bytes();
    connection.count(SMALL).unwrap();
    assert_eq!(drawn(), 0);
    connection.count(3 * MIB).unwrap();
    assert!((3 * MIB..3 * MIB + STEP).contains(&drawn()));
    connection.release(STEP);
    assert!(drawn() >= 3 * MIB, "small amounts are kept");
    connection.release(2 * MIB);
    assert!(drawn() < 2 * MIB);
    connection.release(MIB);
    assert_eq!((connection.bytes(), drawn()), (0, 0));
}

#[test]
fn calls_wait_while_half_of_the_limit_is_unread() {
    let connection = ConnectionUnread::new(limits(0, 100));
    let mut cx = Context::from_waker(Waker::noop());
    connection.count(50).unwrap();
    let mut waits = Box::pin(Arc::clone(&connection).wait_below_half());
    assert_eq!(waits.as_mut().poll(&mut cx), Poll::Pending);
    connection.release(1);
    assert_eq!(waits.as_mut().poll(&mut cx), Poll::Ready(()));
}
