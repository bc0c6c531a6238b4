//! Which connections exceed a timeout: a pure decision from a connection's state and the time.

use super::bodies::BodyWait;
use super::state::{ConnectionState, Order, Phase, Wire};
use std::time::Duration;

/// How long a connection may take to respond to a body that is late.
const END_BODY_MS: u64 = 1000;
/// How long a connection may take to end after `Order::Finish`, so that its client can notice.
const FINISH_MS: u64 = 5000;
/// A connection that is younger may have sent a request that was not read yet.
const MIN_IDLE_MS: u64 = 50;
/// An idle connection of this age ends at once at its maximum age.
const MIN_IDLE_AT_AGE_MS: u64 = 1000;
/// A TLS handshake takes two round trips: one that takes longer is given up first.
const STALLED_HANDSHAKE_MS: u64 = 1000;

/// Timeouts of a connection; `None` = no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// For the TLS handshake.
    pub handshake: Option<Duration>,
    /// For the head of a request, from its first byte; for the preface of HTTP/2.
    pub header: Option<Duration>,
    /// For a body, extended by a second for each `body_rate` bytes that have arrived.
    pub body: Option<Duration>,
    /// Bytes a second.
    pub body_rate: u64,
    /// For the first message of a stream on HTTP/2.
    pub first_message: Option<Duration>,
    /// Without a request, and for a client that does not read its response.
    pub idle: Option<Duration>,
    /// After which a connection ends with its current requests.
    pub age: Option<Duration>,
    /// The same on HTTP/2, and the time that its streams may take then.
    pub http2_age: Option<Duration>,
    pub http2_age_grace: Option<Duration>,
    /// At the limit of connections, a head that has been incomplete for longer is given up before
    /// idle connections.
    pub stalled_head: Duration,
}

/// What a connection has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutVerdict {
    Keep,
    Last,
    EndBody,
    Close,
}

fn ms(limit: Duration) -> u64 {
    limit.as_millis().try_into().unwrap_or(u64::MAX)
}

/// `limit` has passed since `since`.
fn passed(since: u64, limit: Option<Duration>, now: u64) -> bool {
    limit.is_some_and(|limit| now.saturating_sub(since) > ms(limit))
}

impl Timeouts {
    /// Timeouts of requests that have not arrived completely when the server drains.
    pub fn for_drain(grace: Duration) -> Self {
        let grace = Some(grace);
        Self {
            handshake: grace,
            header: grace,
            body: grace,
            first_message: grace,
            ..Self::default()
        }
    }

    /// A connection that is older than `age` ends with its current requests.
    pub fn for_shedding(age: Duration) -> Self {
        Self { age: Some(age), http2_age: Some(age), ..Self::default() }
    }

    /// The shortest one.
    pub fn shortest(&self) -> Duration {
        let Self { handshake, header, body, first_message, idle, age, http2_age, .. } = *self;
        let limits = [handshake, header, body, first_message, idle, age, http2_age];
        limits.into_iter().flatten().min().unwrap_or(Duration::MAX)
    }

    /// What the connection has to do now. Bodies on HTTP/2 that exceed their timeout are ended
    /// here.
    pub fn judge(&self, state: &ConnectionState, now: u64) -> TimeoutVerdict {
        if let Some(streams) = state.streams() {
            streams.bodies.expire(|waits| match waits {
                BodyWait::FirstMessage { since_ms } => passed(since_ms, self.first_message, now),
                BodyWait::Body { since_ms, received } => self.body_is_late(since_ms, received, now),
            });
        }
        let since = state.since_ms();
        let is_late = match state.phase() {
            Phase::Handshake => passed(since, self.handshake, now),
            Phase::Head => passed(since, self.header, now),
            Phase::Body => self.body_is_late(since, state.received(), now),
            Phase::Idle if state.open_calls() > 0 => false,
            Phase::Idle | Phase::Responding | Phase::Blocked | Phase::StreamBlocked => {
                passed(since, self.idle, now)
            }
            Phase::Executing | Phase::Streaming => false,
        };
        let is_goaway_sent = state.wire == Wire::Http2 && state.phase() == Phase::Idle;
        if is_late && is_goaway_sent {
            let finish = self.idle.map(|idle| idle + Duration::from_millis(FINISH_MS));
            return if passed(since, finish, now) {
                TimeoutVerdict::Close
            } else {
                TimeoutVerdict::Last
            };
        }
        if is_late {
            let ends = now.saturating_sub(END_BODY_MS);
            let is_body = state.wire == Wire::Http1 && state.phase() == Phase::Body;
            let is_new = is_body && !self.body_is_late(since, state.received(), ends);
            return if is_new { TimeoutVerdict::EndBody } else { TimeoutVerdict::Close };
        }
        match state.wire {
            Wire::Http1 if passed(state.accepted_ms, self.age, now) => {
                let waits = now.saturating_sub(since) > MIN_IDLE_AT_AGE_MS;
                let is_idle = state.phase() == Phase::Idle && waits;
                if is_idle { TimeoutVerdict::Close } else { TimeoutVerdict::Last }
            }
            Wire::Http2 if passed(state.accepted_ms, self.http2_age, now) => {
                let end = self.http2_age.zip(self.http2_age_grace);
                let end = end.map(|(age, grace)| age.saturating_add(grace));
                let is_over = passed(state.accepted_ms, end, now);
                if is_over { TimeoutVerdict::Close } else { TimeoutVerdict::Last }
            }
            _ => TimeoutVerdict::Keep,
        }
    }

    fn body_is_late(&self, since: u64, received: u64, now: u64) -> bool {
        let extension = received.saturating_mul(1000) / self.body_rate.max(1);
        let extension = if self.body_rate == 0 { 0 } else { extension };
        passed(since.saturating_add(extension), self.body, now)
    }
}

/// Why a connection may be closed to make place for another. The first reason counts most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionReason {
    /// The TLS handshake takes long.
    StalledHandshake,
    /// The head of a request has been incomplete for long.
    StalledHead,
    /// No request is in progress.
    Idle,
    /// The head of a request is incomplete.
    Head,
    /// The TLS handshake is in progress.
    Handshake,
}

/// Why a connection may be closed to make place for another, and since when.
pub fn eviction_reason(
    state: &ConnectionState,
    stalled_head: Duration,
    now: u64,
) -> Option<(EvictionReason, u64)> {
    let since = state.since_ms();
    let age = now.saturating_sub(since);
    match state.phase() {
        _ if state.ordered() == Order::Close as u8 => None,
        Phase::Idle if state.open_calls() == 0 && age > MIN_IDLE_MS => {
            Some((EvictionReason::Idle, since))
        }
        Phase::Handshake if age >= STALLED_HANDSHAKE_MS => {
            Some((EvictionReason::StalledHandshake, since))
        }
        Phase::Handshake => Some((EvictionReason::Handshake, since)),
        Phase::Head if age >= ms(stalled_head) => Some((EvictionReason::StalledHead, since)),
        Phase::Head => Some((EvictionReason::Head, since)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "timeouts_tests.rs"]
mod tests;
