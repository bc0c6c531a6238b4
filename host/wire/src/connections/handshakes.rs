//! The TLS handshakes of the connections of a listener, limited in number: clients that open
//! connections and do not shake hands hold few of them, and no client waits for these for long.

use super::timeouts::EvictionReason;
use super::{ConnectionEntry, Connections, FULL_INTERVAL};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Counts handshakes that have begun and not ended.
pub struct HandshakeLimit {
    max: usize,
    count: AtomicUsize,
    ended: Notify,
}

impl HandshakeLimit {
    pub fn new(max: usize) -> Self {
        Self { max, count: AtomicUsize::new(0), ended: Notify::new() }
    }

    fn is_reached(&self) -> bool {
        self.count.load(Ordering::SeqCst) >= self.max
    }
}

impl Connections {
    /// Waits until another handshake may begin. At the limit, the oldest ones are closed, if they
    /// take longer than a handshake does.
    pub async fn admit_handshake(&self) {
        while self.handshakes.is_reached() {
            let ended = self.handshakes.ended.notified();
            if self.handshakes.is_reached() {
                self.evict_share(self.handshakes.max, |reason| {
                    reason == EvictionReason::StalledHandshake
                });
                let _ = tokio::time::timeout(FULL_INTERVAL, ended).await;
            }
        }
    }
}

impl ConnectionEntry {
    /// The connection shakes hands until the result is dropped.
    pub fn begin_handshake(&self) -> HandshakeEntry {
        self.state.handshake_began();
        self.connections.handshakes.count.fetch_add(1, Ordering::SeqCst);
        HandshakeEntry(Arc::clone(&self.connections))
    }
}

/// A handshake among the others; removed when dropped.
pub struct HandshakeEntry(Arc<Connections>);

impl Drop for HandshakeEntry {
    fn drop(&mut self) {
        self.0.handshakes.count.fetch_sub(1, Ordering::SeqCst);
        self.0.handshakes.ended.notify_one();
    }
}

#[cfg(test)]
#[path = "handshakes_tests.rs"]
mod tests;
