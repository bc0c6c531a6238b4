//! What one connection does, as its task stores it, and what it is ordered to do.

use super::bodies::Bodies;
use super::clock::CoarseClock;
use super::open_calls::{ConnectionCalls, CountedCall};
use super::parked::Parking;
use super::peer::ConnectionPeer;
use super::poll_turn::PollTurn;
use crate::disconnect::ClientState;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use trtserver_base::budget::OpenCallLimit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Http1,
    Http2,
}

/// What a connection does. HTTP/2 has the first two: its requests are streams, which are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Nothing of a request has arrived. On HTTP/2: nothing at all, or the preface.
    Idle,
    /// A part of a request's head has arrived. On HTTP/2: a part of the preface.
    Head,
    /// The head has arrived, and not all of the body.
    Body,
    /// The request has arrived and its response is not ready.
    Executing,
    /// The response is ready, and nothing of it is written.
    Responding,
    /// The client does not read the response.
    Blocked,
    /// A part of a streamed response was sent, and more of it is awaited from the model. HTTP/1
    /// only.
    Streaming,
    /// The client does not read a streamed response.
    StreamBlocked,
    /// The TLS handshake has begun.
    Handshake,
}

impl Phase {
    fn from(number: u8) -> Self {
        use Phase::*;
        [Idle, Head, Body, Executing, Responding, Blocked, Streaming, StreamBlocked, Handshake]
            [usize::from(number.min(8))]
    }
}

/// What a connection is ordered to do. A higher order replaces a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Order {
    None,
    /// The next response is the last one. On HTTP/2: GOAWAY.
    Last,
    /// HTTP/1: the body in progress is late. It ends with an error, and the response is the last
    /// one.
    EndBody,
    /// The response in progress is the last one; close at once if there is none.
    Finish,
    /// Close now.
    Close,
}

/// What one connection does, and since when, in milliseconds of the coarse clock. The connection's
/// task writes; others read.
pub struct ConnectionState {
    pub(super) wire: Wire,
    clock: Arc<CoarseClock>,
    pub(super) accepted_ms: u64,
    phase: AtomicU8,
    since_ms: AtomicU64,
    /// Bytes of a body on HTTP/1.
    received: AtomicU64,
    /// `None` on HTTP/1. Boxed, since most idle connections are of HTTP/1.
    streams: Option<Box<ConnectionStreams>>,
    /// Headers that a poll reads on HTTP/2.
    pub(crate) turn: PollTurn,
    /// Whether the client of an HTTP/1 connection is still there.
    pub(crate) client: ClientState,
    order: AtomicU8,
    parking: AtomicU8,
    waker: Mutex<Option<Waker>>,
    /// Set when it is known, before the first request.
    peer: OnceLock<ConnectionPeer>,
}

/// The streams of an HTTP/2 connection.
pub struct ConnectionStreams {
    /// Calls in progress.
    pub(super) calls: ConnectionCalls,
    /// Bodies that have not arrived completely.
    pub(super) bodies: Bodies,
}

impl ConnectionState {
    pub fn new(wire: Wire, clock: &Arc<CoarseClock>, calls: &'static OpenCallLimit) -> Arc<Self> {
        let now = clock.now_ms();
        let streams =
            || ConnectionStreams { calls: ConnectionCalls::new(calls), bodies: Bodies::default() };
        Arc::new(Self {
            wire,
            clock: Arc::clone(clock),
            accepted_ms: now,
            phase: AtomicU8::new(Phase::Idle as u8),
            since_ms: AtomicU64::new(now),
            received: AtomicU64::new(0),
            streams: (wire == Wire::Http2).then(|| Box::new(streams())),
            turn: PollTurn::default(),
            client: ClientState::default(),
            order: AtomicU8::new(Order::None as u8),
            parking: AtomicU8::new(Parking::Active as u8),
            waker: Mutex::new(None),
            peer: OnceLock::new(),
        })
    }

    /// The client of the connection.
    pub fn connection_peer(&self) -> &ConnectionPeer {
        self.peer.get().unwrap_or(const { &ConnectionPeer::UNKNOWN })
    }

    pub fn set_peer(&self, peer: ConnectionPeer) {
        let _ = self.peer.set(peer);
    }

    /// A connection of a test, whose clock stays at 0.
    #[cfg(test)]
    pub(super) fn alone(wire: Wire) -> Arc<Self> {
        Self::new(wire, &Arc::default(), OpenCallLimit::leak(usize::MAX))
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    pub fn phase(&self) -> Phase {
        Phase::from(self.phase.load(Relaxed))
    }

    /// When the phase began; when bytes were written, if that is later.
    pub fn since_ms(&self) -> u64 {
        self.since_ms.load(Relaxed)
    }

    pub fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    fn enter(&self, phase: Phase) {
        self.since_ms.store(self.now_ms(), Relaxed);
        self.phase.store(phase as u8, Relaxed);
    }

    /// Bytes were read.
    pub fn read(&self, bytes: usize) {
        match self.phase() {
            Phase::Idle | Phase::Responding | Phase::Blocked => self.enter(Phase::Head),
            Phase::Body => self.received.store(self.received() + bytes as u64, Relaxed),
            Phase::Head
            | Phase::Executing
            | Phase::Streaming
            | Phase::StreamBlocked
            | Phase::Handshake => {}
        }
    }

    /// The TLS handshake begins.
    pub fn handshake_began(&self) {
        self.enter(Phase::Handshake);
    }

    /// The TLS handshake has ended.
    pub fn handshake_ended(&self) {
        self.enter(Phase::Idle);
    }

    /// Bytes were written.
    pub fn wrote(&self) {
        if matches!(self.phase(), Phase::Responding | Phase::Blocked | Phase::Idle) {
            self.enter(Phase::Idle);
        } else if self.phase() == Phase::StreamBlocked {
            self.enter(Phase::Streaming);
        }
    }

    /// The socket takes no more bytes.
    pub fn write_blocked(&self) {
        if matches!(self.phase(), Phase::Responding | Phase::Idle) {
            self.enter(Phase::Blocked);
        } else if self.phase() == Phase::Streaming {
            self.enter(Phase::StreamBlocked);
        }
    }

    /// What was written before has left: with TLS the stream takes bytes that wait for the socket.
    pub fn flushed(&self) {
        if matches!(self.phase(), Phase::Blocked | Phase::StreamBlocked) {
            self.wrote();
        }
    }

    /// The head of a request has arrived; on HTTP/2 the preface has.
    pub fn head_arrived(&self) {
        match self.wire {
            Wire::Http1 => {
                self.received.store(0, Relaxed);
                self.enter(Phase::Body);
            }
            Wire::Http2 => self.enter(Phase::Idle),
        }
    }

    /// The request has arrived completely, or the rest of it is not needed.
    pub fn body_arrived(&self) {
        if self.phase() == Phase::Body {
            self.enter(Phase::Executing);
        }
    }

    /// The response is ready.
    pub fn responded(&self) {
        self.enter(Phase::Responding);
    }

    /// The first part of a streamed response is ready.
    pub fn response_stream_began(&self) {
        self.enter(Phase::Streaming);
    }

    /// The last part of a streamed response is ready.
    pub fn response_stream_ended(&self) {
        self.enter(Phase::Responding);
    }

    /// The connection waits for the model.
    pub fn is_executing(&self) -> bool {
        matches!(self.phase(), Phase::Executing | Phase::Streaming)
    }

    pub fn is_streaming(&self) -> bool {
        self.phase() == Phase::Streaming
    }

    /// `None` on HTTP/1.
    pub(super) fn streams(&self) -> Option<&ConnectionStreams> {
        self.streams.as_deref()
    }

    /// Calls in progress on HTTP/2.
    pub(super) fn open_calls(&self) -> usize {
        self.streams().map_or(0, |streams| streams.calls.open())
    }

    pub(super) fn call_ended(&self, call: CountedCall) {
        if self.streams().is_some_and(|streams| streams.calls.end(call)) {
            self.since_ms.store(self.now_ms(), Relaxed);
        }
    }

    /// The response that is ready is the last one.
    pub fn is_last(&self) -> bool {
        self.order.load(Relaxed) != Order::None as u8
    }

    /// The body on HTTP/1 that is being read exceeded its timeout.
    pub fn is_body_late(&self) -> bool {
        self.order.load(Relaxed) == Order::EndBody as u8
    }

    /// The connection has to end, at the latest after its response.
    #[cfg(feature = "tls")]
    pub fn is_ended(&self) -> bool {
        self.ordered() >= Order::Finish as u8
    }

    pub(super) fn ordered(&self) -> u8 {
        self.order.load(SeqCst)
    }

    pub(super) fn order(&self, order: Order) {
        if self.order.fetch_max(order as u8, SeqCst) < order as u8
            && let Some(waker) = &*self.waker.lock()
        {
            waker.wake_by_ref();
        }
    }

    /// Ends a connection in favour of another: on HTTP/2 with GOAWAY first.
    pub(super) fn end(&self) {
        let asked = self.ordered() >= Order::Finish as u8;
        let order = if self.wire == Wire::Http2 && !asked { Order::Finish } else { Order::Close };
        self.order(order);
    }

    /// Asks the connection to park. False if it was asked before, or is parked.
    pub(super) fn ask_to_park(&self) -> bool {
        let (active, asked) = (Parking::Active as u8, Parking::Asked as u8);
        let asks = self.parking.compare_exchange(active, asked, SeqCst, SeqCst).is_ok();
        if asks && let Some(waker) = &*self.waker.lock() {
            waker.wake_by_ref();
        }
        asks
    }

    pub(super) fn is_asked_to_park(&self) -> bool {
        self.parking.load(Relaxed) == Parking::Asked as u8
    }

    #[cfg(test)]
    pub(super) fn is_parked(&self) -> bool {
        self.parking.load(Relaxed) == Parking::Parked as u8
    }

    pub(super) fn set_parking(&self, parking: Parking) {
        self.parking.store(parking as u8, SeqCst);
    }

    /// Orders wake the connection's task through `waker`, which must stay valid for its whole life.
    pub fn set_waker(&self, waker: Waker) {
        *self.waker.lock() = Some(waker);
    }
}
