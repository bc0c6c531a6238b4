//! Unit tests of `timeouts.rs`.

use super::*;
use crate::connections::{BodyProgress, CallClass};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

const SECOND: u64 = 1000;

fn timeouts() -> Timeouts {
    let seconds = |n| Some(Duration::from_secs(n));
    Timeouts {
        header: seconds(2),
        body: seconds(3),
        body_rate: 100,
        idle: seconds(10),
        ..Timeouts::default()
    }
}

/// When the state given to `judge` exceeds its timeout, in seconds from now.
#[track_caller]
fn closes_after(state: &ConnectionState, seconds: u64) {
    let now = seconds * SECOND;
    assert_eq!(timeouts().judge(state, now - 500), TimeoutVerdict::Keep);
    let is_body = (state.wire, state.phase()) == (Wire::Http1, Phase::Body);
    let first = if is_body { TimeoutVerdict::EndBody } else { TimeoutVerdict::Close };
    assert_eq!(timeouts().judge(state, now + 500), first);
    assert_eq!(timeouts().judge(state, now + 1500), TimeoutVerdict::Close);
}

#[test]
fn each_phase_has_its_timeout() {
    let state = ConnectionState::alone(Wire::Http1);
    closes_after(&state, 10);
    state.read(1);
    closes_after(&state, 2);
    state.read(1);
    closes_after(&state, 2);
    state.head_arrived();
    closes_after(&state, 3);
    state.read(400);
    closes_after(&state, 7);
    state.body_arrived();
    assert_eq!(timeouts().judge(&state, u64::MAX), TimeoutVerdict::Keep);
    state.responded();
    closes_after(&state, 10);
    state.write_blocked();
    assert_eq!(state.phase(), Phase::Blocked);
    closes_after(&state, 10);
    state.wrote();
    assert_eq!(state.phase(), Phase::Idle);
    closes_after(&state, 10);
    assert_eq!(Timeouts::default().judge(&state, u64::MAX), TimeoutVerdict::Keep);
}

#[test]
fn handshake_has_a_timeout_and_goes_first() {
    let state = ConnectionState::alone(Wire::Http1);
    let timeouts = Timeouts { handshake: Some(Duration::from_secs(4)), ..timeouts() };
    state.handshake_began();
    state.read(1);
    assert_eq!(timeouts.judge(&state, 3500), TimeoutVerdict::Keep);
    assert_eq!(timeouts.judge(&state, 4500), TimeoutVerdict::Close);
    assert_eq!(timeouts.shortest(), Duration::from_secs(2));
    let reason = |now| eviction_reason(&state, Duration::ZERO, now).map(|(reason, _)| reason);
    assert_eq!(reason(STALLED_HANDSHAKE_MS - 1), Some(EvictionReason::Handshake));
    assert_eq!(reason(STALLED_HANDSHAKE_MS), Some(EvictionReason::StalledHandshake));
    assert!(EvictionReason::StalledHandshake < EvictionReason::StalledHead);
    assert!(EvictionReason::Head < EvictionReason::Handshake);
    assert_eq!(
        Timeouts::for_drain(Duration::from_secs(1)).judge(&state, 1500),
        TimeoutVerdict::Close
    );
    state.handshake_ended();
    assert_eq!(state.phase(), Phase::Idle);
}

#[test]
fn bytes_that_tls_holds_back_count_as_unread() {
    let state = ConnectionState::alone(Wire::Http1);
    state.responded();
    state.wrote();
    // The flush waits for the client.
    state.write_blocked();
    assert_eq!(state.phase(), Phase::Blocked);
    assert_eq!(eviction_reason(&state, Duration::ZERO, u64::MAX), None);
    state.flushed();
    assert_eq!(state.phase(), Phase::Idle);
    state.flushed();
    assert_eq!(state.phase(), Phase::Idle);
    state.read(1);
    state.flushed();
    assert_eq!(state.phase(), Phase::Head);
}

#[test]
fn streamed_response_has_a_timeout_only_while_its_client_does_not_read() {
    let state = ConnectionState::alone(Wire::Http1);
    state.responded();
    state.response_stream_began();
    state.wrote();
    assert_eq!(state.phase(), Phase::Streaming);
    assert_eq!(timeouts().judge(&state, u64::MAX), TimeoutVerdict::Keep);
    assert_eq!(eviction_reason(&state, Duration::ZERO, u64::MAX), None);
    state.write_blocked();
    closes_after(&state, 10);
    state.wrote();
    assert_eq!(state.phase(), Phase::Streaming);
    state.response_stream_ended();
    state.wrote();
    assert_eq!(state.phase(), Phase::Idle);
}

#[test]
fn http2_connection_with_streams_is_not_idle() {
    let state = ConnectionState::alone(Wire::Http2);
    state.read(1);
    closes_after(&state, 2);
    state.head_arrived();
    let late = 11 * SECOND;
    assert_eq!(timeouts().judge(&state, late), TimeoutVerdict::Last);
    assert_eq!(timeouts().judge(&state, late + 2 * FINISH_MS), TimeoutVerdict::Close);
    state.streams().unwrap().calls.begin(CallClass::Inference, 100).unwrap();
    assert_eq!(timeouts().judge(&state, late + 2 * FINISH_MS), TimeoutVerdict::Keep);
    assert_eq!(eviction_reason(&state, Duration::ZERO, late), None);
    state.call_ended(state.streams().unwrap().calls.take_begun().unwrap());
    assert_eq!(eviction_reason(&state, Duration::ZERO, late), Some((EvictionReason::Idle, 0)));
}

#[test]
fn stalled_heads_are_given_up_before_idle_connections_and_these_before_new_heads() {
    let [head, idle] = [(); 2].map(|()| ConnectionState::alone(Wire::Http1));
    head.read(1);
    let second = Duration::from_secs(1);
    for (stalled_head, now, of_head, of_idle) in [
        (second, 0, Some(EvictionReason::Head), None),
        (second, 60, Some(EvictionReason::Head), Some(EvictionReason::Idle)),
        (second, 999, Some(EvictionReason::Head), Some(EvictionReason::Idle)),
        (second, 1000, Some(EvictionReason::StalledHead), Some(EvictionReason::Idle)),
        (Duration::ZERO, 0, Some(EvictionReason::StalledHead), None),
    ] {
        let reason = |state| eviction_reason(state, stalled_head, now).map(|(reason, _)| reason);
        assert_eq!((reason(&head), reason(&idle)), (of_head, of_idle), "{now} ms");
    }
    assert!(EvictionReason::StalledHead < EvictionReason::Idle);
    assert!(EvictionReason::Idle < EvictionReason::Head);
}

#[derive(Default)]
struct CountWakes(AtomicUsize);

impl Wake for CountWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn slow_http2_body_expires() {
    let state = ConnectionState::alone(Wire::Http2);
    state.head_arrived();
    state.streams().unwrap().calls.begin(CallClass::Inference, 100).unwrap();
    let wakes = Arc::new(CountWakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let [mut slow, mut fast, mut stream] = [(); 3].map(|()| BodyProgress::new(Arc::clone(&state)));
    stream.allow_pauses();
    for body in [&mut slow, &mut fast, &mut stream] {
        assert!(!body.waits(&waker));
    }
    fast.received(&[0; 1000]);
    assert_eq!(timeouts().judge(&state, 5 * SECOND), TimeoutVerdict::Keep);
    assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    assert!(slow.waits(&waker) && !fast.waits(&waker) && !stream.waits(&waker));
    // Half a message.
    stream.received(&[0, 0]);
    assert!(!stream.waits(&waker));
    timeouts().judge(&state, 5 * SECOND);
    assert!(stream.waits(&waker));
}

#[test]
fn stream_without_first_message_expires_after_a_time_of_its_own() {
    let state = ConnectionState::alone(Wire::Http2);
    state.head_arrived();
    let timeouts = Timeouts { first_message: Some(Duration::from_secs(8)), ..timeouts() };
    let waker = Waker::noop();
    let [mut silent, mut begun, mut between] =
        [(); 3].map(|()| BodyProgress::new(Arc::clone(&state)));
    for stream in [&mut silent, &mut begun, &mut between] {
        stream.allow_pauses();
        assert!(!stream.waits(waker) && stream.awaits_first_message());
    }
    begun.received(&[0]);
    between.received(&[0; 5]);
    assert!(!begun.waits(waker) && !between.waits(waker));
    timeouts.judge(&state, 7 * SECOND);
    assert!(!silent.waits(waker) && begun.waits(waker) && !between.waits(waker));
    timeouts.judge(&state, 9 * SECOND);
    assert!(silent.waits(waker) && silent.awaits_first_message());
    timeouts.judge(&state, 1000 * SECOND);
    assert!(!between.waits(waker) && !between.awaits_first_message());
}

#[test]
fn connection_ends_at_its_age() {
    let timeouts = Timeouts {
        age: Some(Duration::from_secs(60)),
        http2_age: Some(Duration::from_secs(60)),
        http2_age_grace: Some(Duration::from_secs(5)),
        ..Timeouts::default()
    };
    let (http1, http2) = (ConnectionState::alone(Wire::Http1), ConnectionState::alone(Wire::Http2));
    http1.read(1);
    http2.head_arrived();
    http2.streams().unwrap().calls.begin(CallClass::Inference, 100).unwrap();
    let at = |seconds: u64| seconds * SECOND;
    for state in [&http1, &http2] {
        assert_eq!(timeouts.judge(state, at(59)), TimeoutVerdict::Keep);
        assert_eq!(timeouts.judge(state, at(61)), TimeoutVerdict::Last);
    }
    assert_eq!(timeouts.judge(&http1, at(600)), TimeoutVerdict::Last);
    assert_eq!(timeouts.judge(&http2, at(66)), TimeoutVerdict::Close);
}
