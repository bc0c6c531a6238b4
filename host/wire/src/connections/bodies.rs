//! The request bodies of an HTTP/2 connection that have not arrived completely.

use parking_lot::Mutex;
use std::task::Waker;

/// By key; keys of bodies that have ended are reused.
#[derive(Default)]
pub struct Bodies(Mutex<Vec<Option<AwaitedBody>>>);

struct AwaitedBody {
    waits: BodyWait,
    waker: Waker,
    expired: bool,
}

/// What is awaited, and since when.
#[derive(Clone, Copy, Debug)]
pub enum BodyWait {
    /// The first byte of the first message of a stream.
    FirstMessage { since_ms: u64 },
    /// The rest of a body or message, of which so many bytes have arrived.
    Body { since_ms: u64, received: u64 },
}

impl BodyWait {
    pub fn first_message(since_ms: u64) -> Self {
        Self::FirstMessage { since_ms }
    }

    pub fn body(since_ms: u64) -> Self {
        Self::Body { since_ms, received: 0 }
    }
}

impl Bodies {
    /// Adds a body, and returns its key.
    pub fn add(&self, waits: BodyWait, waker: &Waker) -> u32 {
        let body = AwaitedBody { waits, waker: waker.clone(), expired: false };
        let mut bodies = self.0.lock();
        let key = bodies.iter().position(Option::is_none).unwrap_or_else(|| {
            bodies.push(None);
            bodies.len() - 1
        });
        bodies[key] = Some(body);
        key as u32
    }

    /// More of a body is awaited. True if it has expired.
    pub fn waits(&self, key: u32, waker: &Waker) -> bool {
        match self.0.lock().get_mut(key as usize) {
            Some(Some(body)) => {
                body.waker.clone_from(waker);
                body.expired
            }
            _ => false,
        }
    }

    pub fn received(&self, key: u32, bytes: usize, now_ms: u64) {
        if let Some(Some(body)) = self.0.lock().get_mut(key as usize) {
            if let BodyWait::FirstMessage { .. } = body.waits {
                body.waits = BodyWait::body(now_ms);
            }
            if let BodyWait::Body { received, .. } = &mut body.waits {
                *received += bytes as u64;
            }
        }
    }

    pub fn remove(&self, key: u32) {
        self.0.lock()[key as usize] = None;
    }

    /// Expires the bodies for which `is_late` is true.
    pub fn expire(&self, is_late: impl Fn(BodyWait) -> bool) {
        for body in self.0.lock().iter_mut().flatten() {
            if !body.expired && is_late(body.waits) {
                body.expired = true;
                body.waker.wake_by_ref();
            }
        }
    }
}
