//! What one listener counts of TLS: the listener writes it, the metrics page reads it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Counters of one listener with TLS.
#[derive(Debug)]
pub struct TlsStats {
    /// `http`, `grpc`, `metrics` or `health`.
    pub listener: &'static str,
    /// When the first certificate of the chain in use expires, in seconds since 1970.
    expires_at: AtomicI64,
    reloads: [AtomicU64; TlsReloadOutcome::ALL.len()],
    failures: [AtomicU64; HandshakeFailure::ALL.len()],
}

/// How a look at changed files ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsReloadOutcome {
    /// New connections get the new certificate.
    Success,
    /// The files cannot be used; those before stay in use.
    Failure,
}

/// Why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// It took too long, or was the oldest at the limit of handshakes.
    Timeout,
    /// The client closed the connection, or the network failed.
    Disconnected,
    /// The client has no certificate, or one that is not accepted, or does not accept the server's.
    Certificate,
    /// The client speaks no TLS, or no version or cipher of the server's.
    Protocol,
}

impl TlsReloadOutcome {
    pub const ALL: [Self; 2] = [Self::Success, Self::Failure];

    /// The label in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

impl HandshakeFailure {
    pub const ALL: [Self; 4] =
        [Self::Timeout, Self::Disconnected, Self::Certificate, Self::Protocol];

    /// The label in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Disconnected => "disconnected",
            Self::Certificate => "certificate",
            Self::Protocol => "protocol",
        }
    }
}

impl TlsStats {
    pub fn new(listener: &'static str) -> Self {
        Self {
            listener,
            expires_at: AtomicI64::new(0),
            reloads: Default::default(),
            failures: Default::default(),
        }
    }

    pub fn expires_at(&self) -> i64 {
        self.expires_at.load(Relaxed)
    }

    pub fn set_expires_at(&self, seconds: i64) {
        self.expires_at.store(seconds, Relaxed);
    }

    pub fn count_reload(&self, outcome: TlsReloadOutcome) {
        self.reloads[outcome as usize].fetch_add(1, Relaxed);
    }

    pub fn reloads(&self, outcome: TlsReloadOutcome) -> u64 {
        self.reloads[outcome as usize].load(Relaxed)
    }

    pub fn count_failure(&self, failure: HandshakeFailure) {
        self.failures[failure as usize].fetch_add(1, Relaxed);
    }

    pub fn failures(&self, failure: HandshakeFailure) -> u64 {
        self.failures[failure as usize].load(Relaxed)
    }
}
