//! Server state: lifecycle phase, and the number of requests in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

/// Lifecycle phase of the server; the numbers are those of `ServerReadyState` on the v1 wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    Initializing = 1,
    Ready = 2,
    Exiting = 3,
    FailedToInitialize = 10,
}

/// See the module text.
pub struct ServerState {
    phase: AtomicU8,
    started: Instant,
    in_flight: AtomicU64,
    /// v1 request ids: one counter for the whole server, starting at 1.
    next_request: AtomicU64,
}

impl ServerState {
    pub fn new() -> Self {
        Self {
            phase: AtomicU8::new(Phase::Initializing as u8),
            started: Instant::now(),
            in_flight: AtomicU64::new(0),
            next_request: AtomicU64::new(1),
        }
    }

    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            2 => Phase::Ready,
            3 => Phase::Exiting,
            10 => Phase::FailedToInitialize,
            _ => Phase::Initializing,
        }
    }

    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// True while initializing and serving (docs/protocol/v1.md §3.3 for base: live before ready).
    pub fn is_live(&self) -> bool {
        matches!(self.phase(), Phase::Initializing | Phase::Ready)
    }

    /// Nanoseconds since the start.
    pub fn uptime_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// The next v1 request id.
    pub fn next_request_id(&self) -> u64 {
        self.next_request.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a request as in flight until the guard is dropped. Drain waits for it.
    pub fn begin_request(self: &Arc<Self>) -> InFlightGuard {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlightGuard(Arc::clone(self))
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Acquire)
    }
}

impl Default for ServerState {
    fn default() -> Self {
        Self::new()
    }
}

/// One request in flight.
pub struct InFlightGuard(Arc<ServerState>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}
