//! The request bodies of an HTTP/2 connection that have not arrived completely.

use super::clock::now_ms;
use crate::sync::Mutex;
use std::task::Waker;

/// By key; keys of bodies that have ended are reused.
#[derive(Default)]
pub struct Bodies(Mutex<Vec<Option<Body>>>);

struct Body {
    since_ms: u64,
    received: u64,
    waker: Waker,
    expired: bool,
}

impl Bodies {
    /// Adds a body that is awaited from now on, and returns its key.
    pub fn add(&self, waker: &Waker) -> u32 {
        let body = Body { since_ms: now_ms(), received: 0, waker: waker.clone(), expired: false };
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

    pub fn received(&self, key: u32, bytes: usize) {
        if let Some(Some(body)) = self.0.lock().get_mut(key as usize) {
            body.received += bytes as u64;
        }
    }

    pub fn remove(&self, key: u32) {
        self.0.lock()[key as usize] = None;
    }

    /// Expires the bodies for which `is_late` is true, given when they began and their bytes so far.
    pub fn expire(&self, is_late: impl Fn(u64, u64) -> bool) {
        for body in self.0.lock().iter_mut().flatten() {
            if !body.expired && is_late(body.since_ms, body.received) {
                body.expired = true;
                body.waker.wake_by_ref();
            }
        }
    }
}
