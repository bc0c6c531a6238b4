//! Server state: lifecycle phase, and the number of requests in flight.

use crate::clock::now_ns;
pub use crate::in_flight::InFlightGuard;
use crate::in_flight::InFlightRequests;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

/// Lifecycle phase of the server; the numbers are those of `ServerReadyState` on the v1 wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ServerPhase {
    Initializing = 1,
    Ready = 2,
    Exiting = 3,
    FailedToInitialize = 10,
}

impl ServerPhase {
    /// Name of the phase, as clients see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Initializing => "INITIALIZING",
            Self::Ready => "READY",
            Self::Exiting => "EXITING",
            Self::FailedToInitialize => "FAILED_TO_INITIALIZE",
        }
    }
}

/// On a cache line of its own, since requests of v1 write it and all requests read what would be
/// beside it.
#[repr(align(128))]
struct NextRequest(AtomicU64);

/// Lifecycle phase of the server, its requests in flight, and the counter of v1 request ids.
pub struct ServerState {
    phase: AtomicU8,
    /// When the phase began, CLOCK_MONOTONIC.
    phase_since_ns: AtomicU64,
    /// Why the server failed to initialize; empty if it did not.
    failure: Mutex<String>,
    /// The drain delay has begun: not ready, while requests are still accepted.
    withdrawn: AtomicBool,
    started: Instant,
    in_flight: InFlightRequests,
    /// v1 request ids: one counter for the whole server, starting at 1.
    next_request: NextRequest,
}

impl ServerState {
    pub fn new() -> Self {
        Self {
            phase: AtomicU8::new(ServerPhase::Initializing as u8),
            phase_since_ns: AtomicU64::new(now_ns()),
            failure: Mutex::default(),
            withdrawn: AtomicBool::new(false),
            started: Instant::now(),
            in_flight: InFlightRequests::default(),
            next_request: NextRequest(AtomicU64::new(1)),
        }
    }

    pub fn phase(&self) -> ServerPhase {
        match self.phase.load(Ordering::Acquire) {
            2 => ServerPhase::Ready,
            3 => ServerPhase::Exiting,
            10 => ServerPhase::FailedToInitialize,
            _ => ServerPhase::Initializing,
        }
    }

    pub fn set_phase(&self, phase: ServerPhase) {
        self.phase_since_ns.store(now_ns(), Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// Enters the phase of a server that could not initialize.
    pub fn fail(&self, reason: String) {
        *self.failure.lock() = reason;
        self.set_phase(ServerPhase::FailedToInitialize);
    }

    /// Begins the drain delay: load balancers learn that the server is not ready. The phase stays,
    /// so that requests are accepted.
    pub fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    /// The server waits for load balancers to send it nothing more.
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    /// When the phase began, in nanoseconds of CLOCK_MONOTONIC.
    pub fn phase_since_ns(&self) -> u64 {
        self.phase_since_ns.load(Ordering::Relaxed)
    }

    /// Why the server failed to initialize.
    pub fn failure(&self) -> String {
        self.failure.lock().clone()
    }

    /// The load at start has ended.
    pub fn is_started(&self) -> bool {
        matches!(self.phase(), ServerPhase::Ready | ServerPhase::Exiting)
    }

    /// True while initializing and serving (docs/protocol/v1.md §3.3 for base: live before ready).
    pub fn is_live(&self) -> bool {
        matches!(self.phase(), ServerPhase::Initializing | ServerPhase::Ready)
    }

    /// Nanoseconds since the start.
    pub fn uptime_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// The next v1 request id.
    pub fn next_request_id(&self) -> u64 {
        self.next_request.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a request as in flight until the guard is dropped. Drain waits for it.
    pub fn begin_request(&self) -> InFlightGuard {
        self.in_flight.begin()
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight.count()
    }
}

impl Default for ServerState {
    fn default() -> Self {
        Self::new()
    }
}
