//! How many headers one poll of a connection reads.
//!
//! h2 reads and decodes frames as long as there are any, up to a megabyte in one poll, before it
//! returns the first call. A client that opens calls without pause would occupy a network thread for
//! tens of milliseconds: a call costs microseconds, and each of its headers a tenth of one, where the
//! client sends a few bytes for each. So a poll that has read many headers reads nothing more. The
//! connection is polled again after the other tasks of its thread, and after the sockets of all
//! connections were looked at, and then reads less at a time. Tensors are not limited: their bytes
//! are only copied. On HTTP/1, heads are limited, but for what arrives with their first bytes. A
//! connection with several such polls is heavy ([`super::heavy`]).

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll};
use tokio::task::yield_now;

/// What one poll may read, in the unit of [`HeaderCost`].
pub const TURN_COST: u32 = 128;
/// Bytes of a frame that cost as much as the frame itself.
const BYTES_PER_COST: usize = 64;
/// Bytes that are read at once after a poll that read as much as it may.
pub const SHORT_READ: usize = 2 << 10;
/// The count of full polls ([`PollTurn`]) at which a connection becomes heavy.
pub const HEAVY_POLLS: u32 = 2;
/// The highest count of full polls. A heavy connection becomes light when the count reaches 0.
const MAX_COUNTED_POLLS: u32 = 64;

const PREFACE: usize = 24;
const FRAME_HEAD: usize = 9;
const DATA: u8 = 0;

/// The turn of one connection. Its task alone writes.
#[derive(Debug, Default)]
pub struct PollTurn {
    cost: AtomicU32,
    reads_less: AtomicBool,
    /// A full poll, which reaches [`TURN_COST`], adds one. Any other poll that reads headers subtracts
    /// one.
    full_polls: AtomicU32,
    heavy: AtomicBool,
}

impl PollTurn {
    /// A poll begins.
    pub fn begin(&self) {
        let cost = self.cost.load(Relaxed);
        if cost > 0 {
            self.cost.store(0, Relaxed);
            self.reads_less.store(cost >= TURN_COST, Relaxed);
            self.count_poll(cost >= TURN_COST);
        }
    }

    fn count_poll(&self, full: bool) {
        let counted = self.full_polls.load(Relaxed);
        if !full && counted == 0 {
            return;
        }
        let counted = if full { (counted + 1).min(MAX_COUNTED_POLLS) } else { counted - 1 };
        self.full_polls.store(counted, Relaxed);
        if counted == 0 || counted == HEAVY_POLLS && full {
            self.heavy.store(counted > 0, Relaxed);
        }
    }

    /// The connection's headers take much of its thread's time.
    pub fn is_heavy(&self) -> bool {
        self.heavy.load(Relaxed)
    }

    /// Frames were read.
    pub fn add(&self, cost: u32) {
        if cost > 0 {
            self.cost.store(self.cost.load(Relaxed).saturating_add(cost), Relaxed);
        }
    }

    /// Bytes of a head of HTTP/1 were read.
    pub fn add_head_bytes(&self, bytes: usize) {
        self.add(u32::try_from(bytes / BYTES_PER_COST).unwrap_or(u32::MAX));
    }

    /// The long head of an HTTP/1 request was answered.
    pub fn reset(&self) {
        self.full_polls.store(0, Relaxed);
        self.heavy.store(false, Relaxed);
    }

    /// Ready if this poll may read. Otherwise the task is woken once its thread has looked at all
    /// sockets. The waker is handed over in this poll, so the future need not live on.
    pub fn poll_may_read(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_over() { pin!(yield_now()).poll(cx) } else { Poll::Ready(()) }
    }

    /// This poll has read as much as it may.
    fn is_over(&self) -> bool {
        self.cost.load(Relaxed) >= TURN_COST
    }

    /// On HTTP/2: the poll before read as much as it may: read [`SHORT_READ`] at a time.
    pub fn reads_less(&self) -> bool {
        self.reads_less.load(Relaxed)
    }
}

/// Follows the frames that are read on one connection, and adds up what they cost: 1 for each frame
/// without tensor bytes, and 1 for each 64 bytes in it.
pub struct HeaderCost {
    /// Bytes that are not looked at: the preface, payloads.
    skip: usize,
    head: [u8; FRAME_HEAD],
    head_len: usize,
}

impl Default for HeaderCost {
    fn default() -> Self {
        Self { skip: PREFACE, head: [0; FRAME_HEAD], head_len: 0 }
    }
}

impl HeaderCost {
    /// The cost of the frames whose heads end in the next `bytes` of the connection.
    pub fn count(&mut self, mut bytes: &[u8]) -> u32 {
        let mut cost = 0;
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return cost;
            }
            let part = (FRAME_HEAD - self.head_len).min(bytes.len());
            self.head[self.head_len..][..part].copy_from_slice(&bytes[..part]);
            self.head_len += part;
            bytes = &bytes[part..];
            if self.head_len == FRAME_HEAD {
                self.head_len = 0;
                let [high, middle, low, kind, ..] = self.head;
                let length = u32::from_be_bytes([0, high, middle, low]);
                self.skip = length as usize;
                if kind != DATA {
                    cost += 1 + length / BYTES_PER_COST as u32;
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "poll_turn_tests.rs"]
mod tests;
