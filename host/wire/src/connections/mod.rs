//! The open connections of a listener: their number is limited, and connections that make no
//! progress are closed.
//!
//! Each connection stores what it does, and since when, in its [`ConnectionState`]; that costs a
//! few plain stores a request. One task checks all of them a few times a second and orders each
//! connection that exceeds a timeout to end, and each idle one to give its buffers back ([`parked`]).
//! So there is no timer per connection or request. Times come from a clock that this task advances.

mod automatic_response;
mod bodies;
mod clock;
mod guarded;
mod handshakes;
mod head_memory;
mod heavy;
mod open_calls;
mod parked;
mod peer;
mod poll_turn;
mod preface;
mod progress;
mod state;
mod streams;
mod timeouts;
mod unix_authority;

pub use automatic_response::with_text;
pub use guarded::{CLOSED_BY_ORDER, GuardedConnection};
pub use handshakes::HandshakeEntry;
pub use head_memory::HeadMemory;
pub use heavy::MovingConnection;
pub use open_calls::CallClass;
pub use parked::ParkingConnection;
pub use peer::{ConnectionPeer, PeerAddress};
pub use preface::PrefaceWatch;
pub use progress::BodyProgress;
pub use state::{ConnectionState, Phase, Wire};
pub use streams::CountStreams;
pub use timeouts::Timeouts;

use clock::CoarseClock;
use handshakes::HandshakeLimit;
use parking_lot::Mutex;
use state::Order;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use timeouts::{EvictionReason, TimeoutVerdict};
use tokio::sync::Notify;
use trtserver_base::budget::OpenCallLimit;
use trtserver_base::heap;

/// Bounds of the interval at which connections are looked at.
const MIN_INTERVAL: Duration = Duration::from_millis(20);
const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// How often a full listener looks for a connection to close.
const FULL_INTERVAL: Duration = Duration::from_millis(20);
/// At the limit, one in so many connections is closed at a time: each search costs a look at all of
/// them.
const EVICT_SHARE: usize = 128;
/// The buffers of so many connections that park at a time are worth a trim: a megabyte.
const TRIM_AFTER: usize = 64;

/// The open connections of one listener, limited in number and in time without progress.
pub struct Connections {
    timeouts: Timeouts,
    /// Maximum number of open connections.
    max: usize,
    handshakes: HandshakeLimit,
    open: Mutex<OpenConnections>,
    count: AtomicUsize,
    /// The server drains: every response is the last one of its connection.
    draining: AtomicBool,
    opened: Notify,
    closed: Notify,
    clock: Arc<CoarseClock>,
    /// The limit of open calls of all connections of the server.
    calls: &'static OpenCallLimit,
}

/// The states by key; free keys are reused.
#[derive(Default)]
struct OpenConnections {
    states: Vec<Option<Arc<ConnectionState>>>,
    free: Vec<usize>,
}

impl Connections {
    /// At most `max` connections, of which `max_handshakes` shake hands. Must be called inside the runtime, on which the task that checks
    /// timeouts runs.
    pub fn new(
        max: usize,
        max_handshakes: usize,
        timeouts: Timeouts,
        calls: &'static OpenCallLimit,
    ) -> Arc<Self> {
        let this = Arc::new(Self {
            timeouts,
            max,
            handshakes: HandshakeLimit::new(max_handshakes),
            open: Mutex::default(),
            count: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            opened: Notify::new(),
            closed: Notify::new(),
            clock: Arc::default(),
            calls,
        });
        tokio::spawn(watch(Arc::downgrade(&this), timeouts));
        this
    }

    /// Waits until another connection may be accepted. At the limit, others are closed for it, see
    /// [`Self::evict`].
    pub async fn admit(&self) {
        while self.count() >= self.max {
            // Connections that were accepted just now are read first: with their heads incomplete,
            // they are closed in place of idle ones.
            tokio::task::yield_now().await;
            let closed = self.closed.notified();
            if self.count() >= self.max {
                self.evict();
                let _ = tokio::time::timeout(FULL_INTERVAL, closed).await;
            }
        }
    }

    /// Adds a connection until its entry is dropped.
    pub fn add(self: &Arc<Self>, wire: Wire) -> ConnectionEntry {
        self.clock.advance();
        let state = ConnectionState::new(wire, &self.clock, self.calls);
        if self.draining.load(Ordering::SeqCst) {
            state.order(Order::Last);
        }
        let mut open = self.open.lock();
        let key = open.free.pop().unwrap_or_else(|| {
            open.states.push(None);
            open.states.len() - 1
        });
        open.states[key] = Some(Arc::clone(&state));
        drop(open);
        self.count.fetch_add(1, Ordering::SeqCst);
        self.opened.notify_one();
        ConnectionEntry { connections: Arc::clone(self), key, state }
    }

    /// Maximum number of open connections; `None`: no limit.
    pub fn limit(&self) -> Option<usize> {
        (self.max < usize::MAX).then_some(self.max)
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Closes connections whose TLS handshake or request head is incomplete, and idle ones: the oldest
    /// first, in the order of [`EvictionReason`]. Returns how many.
    pub fn evict(&self) -> usize {
        self.evict_share(self.max, |_| true)
    }

    /// Closes a share of `max` connections for these reasons.
    fn evict_share(&self, max: usize, is_included: impl Fn(EvictionReason) -> bool) -> usize {
        let now = self.clock.advance();
        let mut found: Vec<(EvictionReason, u64, Arc<ConnectionState>)> = Vec::new();
        self.each(|state| {
            let reason = timeouts::eviction_reason(state, self.timeouts.stalled_head, now);
            if let Some((reason, since)) = reason
                && is_included(reason)
            {
                found.push((reason, since, Arc::clone(state)));
            }
        });
        let count = found.len().min(1 + max / EVICT_SHARE);
        found.sort_unstable_by_key(|(reason, since, _)| (*reason, *since));
        for (_, _, state) in &found[..count] {
            state.end();
        }
        count
    }

    /// From now on each response is the last one of its connection: `Connection: close`, or GOAWAY.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.each(|state| state.order(Order::Last));
    }

    /// Ends requests that have not arrived completely and began more than `grace` ago.
    pub fn end_incomplete(&self, grace: Duration) {
        let now = self.clock.advance();
        let timeouts = Timeouts::for_drain(grace);
        self.each(|state| match timeouts.judge(state, now) {
            TimeoutVerdict::Keep | TimeoutVerdict::Last => {}
            TimeoutVerdict::EndBody => state.order(Order::EndBody),
            TimeoutVerdict::Close => state.order(Order::Close),
        });
    }

    /// The response in progress is the last one of each connection that is older than `age`; such
    /// a connection that has been idle is closed.
    pub fn shed(&self, age: Duration) {
        let now = self.clock.advance();
        let timeouts = Timeouts::for_shedding(age);
        self.each(|state| obey_verdict(state, timeouts.judge(state, now)));
    }

    /// Ends all connections: at once where nothing is in progress, the others after their response
    /// or after `grace`.
    pub async fn end_all(&self, grace: Duration) {
        self.draining.store(true, Ordering::SeqCst);
        self.each(|state| state.order(Order::Finish));
        let all_closed = async {
            while self.count() > 0 {
                let closed = self.closed.notified();
                if self.count() > 0 {
                    let _ = tokio::time::timeout(FULL_INTERVAL, closed).await;
                }
            }
        };
        if tokio::time::timeout(grace, all_closed).await.is_err() {
            self.each(|state| state.order(Order::Close));
        }
    }

    fn each(&self, mut act: impl FnMut(&Arc<ConnectionState>)) {
        self.open.lock().states.iter().flatten().for_each(&mut act);
    }

    fn enforce_timeouts(&self) {
        let now = self.clock.advance();
        let mut parked = 0;
        self.each(|state| {
            if let Some(streams) = state.streams() {
                streams.calls.trim();
            }
            obey_verdict(state, self.timeouts.judge(state, now));
            parked += usize::from(state.park_if_idle(now));
        });
        if parked >= TRIM_AFTER {
            heap::trim_soon();
        }
    }

    /// How many connections are parked.
    #[cfg(test)]
    fn parked(&self) -> usize {
        let mut count = 0;
        self.each(|state| count += usize::from(state.is_parked()));
        count
    }
}

fn obey_verdict(state: &ConnectionState, verdict: TimeoutVerdict) {
    match verdict {
        TimeoutVerdict::Keep => {}
        TimeoutVerdict::Last => state.order(Order::Last),
        TimeoutVerdict::EndBody => state.order(Order::EndBody),
        TimeoutVerdict::Close => state.order(Order::Close),
    }
}

/// Enforces the timeouts while there are connections.
async fn watch(connections: Weak<Connections>, timeouts: Timeouts) {
    let interval = timeouts.shortest() / 8;
    let interval = interval.clamp(MIN_INTERVAL, MAX_INTERVAL);
    while let Some(connections) = connections.upgrade() {
        if connections.count() == 0 {
            connections.opened.notified().await;
        }
        connections.enforce_timeouts();
        drop(connections);
        tokio::time::sleep(interval).await;
    }
}

/// An open connection among the others; removed when dropped.
pub struct ConnectionEntry {
    connections: Arc<Connections>,
    key: usize,
    state: Arc<ConnectionState>,
}

impl ConnectionEntry {
    pub fn state(&self) -> &Arc<ConnectionState> {
        &self.state
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        open.states[self.key] = None;
        open.free.push(self.key);
        drop(open);
        self.connections.count.fetch_sub(1, Ordering::SeqCst);
        self.connections.closed.notify_one();
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
