//! The open gRPC calls of one connection. Each is counted with its headers as soon as they have
//! arrived, until it ends.
//!
//! A connection draws on the limits of all connections (`base/src/budget/open_calls.rs`) for
//! several calls at a time, and gives the surplus back when its timeouts are checked: an ordinary
//! call costs one addition to a counter of its connection and one subtraction. A few calls of each
//! connection are counted and never refused, so that clients with few calls are served beside one
//! with many. Inference and all other calls have separate counters: health checks are answered when
//! no inference call is accepted.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use trtserver_base::budget::{CallGrant, OpenCallLimit};
use trtserver_base::error::Result;

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CallClass {
    Inference,
    /// Health, metadata, control.
    Other,
}

/// Calls, and the bytes that they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CallLoad {
    calls: usize,
    bytes: usize,
}

/// Low bits of a packed load, for its calls.
const CALL_BITS: u32 = 20;
/// A connection draws for at most so many calls ahead.
const MAX_AHEAD: CallLoad = CallLoad { calls: 32, bytes: 64 << 10 };

impl CallClass {
    /// What a connection may always have open.
    fn unrefused(self) -> CallLoad {
        match self {
            Self::Inference => CallLoad { calls: 16, bytes: 96 << 10 },
            Self::Other => CallLoad { calls: 8, bytes: 48 << 10 },
        }
    }
}

impl CallLoad {
    fn pack(self) -> u64 {
        (self.bytes as u64) << CALL_BITS | self.calls as u64
    }

    fn unpack(packed: u64) -> Self {
        let calls = packed & ((1 << CALL_BITS) - 1);
        Self { calls: calls as usize, bytes: (packed >> CALL_BITS) as usize }
    }

    fn fits(self, other: Self) -> bool {
        self.calls <= other.calls && self.bytes <= other.bytes
    }

    /// With calls that may follow.
    fn ahead(self, most: Self) -> Self {
        Self {
            calls: self.calls + self.calls.min(most.calls),
            bytes: self.bytes + self.bytes.min(most.bytes),
        }
    }

    fn min(self, other: Self) -> Self {
        Self { calls: self.calls.min(other.calls), bytes: self.bytes.min(other.bytes) }
    }
}

/// A call that was counted.
#[derive(Clone, Copy, Debug)]
pub struct CountedCall {
    class: CallClass,
    bytes: usize,
}

/// Counters of the open gRPC calls of one connection. The connection's task begins calls; any
/// thread ends them.
pub struct ConnectionCalls {
    inference: ClassCalls,
    other: ClassCalls,
    /// The call that has begun and whose task is not created yet: its bytes, and its class in the
    /// lowest bit. 0 = none.
    begun: AtomicU32,
}

impl ConnectionCalls {
    pub fn new(limit: &'static OpenCallLimit) -> Self {
        let [inference, other] = [(); 2].map(|()| ClassCalls::new(limit));
        Self { inference, other, begun: AtomicU32::new(0) }
    }

    /// Counts a call that holds `bytes`. [`ConnectionCalls::take_begun`] returns it.
    ///
    /// # Errors
    /// It exceeds a limit.
    pub fn begin(&self, class: CallClass, bytes: usize) -> Result<()> {
        let bytes = bytes.min(u32::MAX as usize >> 1);
        self.class_calls(class).begin(class, bytes)?;
        self.begun.store((bytes as u32) << 1 | class as u32, Relaxed);
        Ok(())
    }

    /// The call that was begun last; `None` if it was refused.
    pub fn take_begun(&self) -> Option<CountedCall> {
        let begun = self.begun.load(Relaxed);
        if begun == 0 {
            return None;
        }
        self.begun.store(0, Relaxed);
        let class = if begun & 1 == 0 { CallClass::Inference } else { CallClass::Other };
        Some(CountedCall { class, bytes: (begun >> 1) as usize })
    }

    /// True if no call is open then.
    pub fn end(&self, call: CountedCall) -> bool {
        let load = CallLoad { calls: 1, bytes: call.bytes }.pack();
        let before = self.class_calls(call.class).open.fetch_sub(load, SeqCst);
        CallLoad::unpack(before).calls == 1 && self.open() == 0
    }

    /// How many calls are open.
    pub fn open(&self) -> usize {
        self.inference.open().calls + self.other.open().calls
    }

    /// Gives back what was drawn ahead and is not needed.
    pub fn trim(&self) {
        self.inference.trim();
        self.other.trim();
    }

    fn class_calls(&self, class: CallClass) -> &ClassCalls {
        match class {
            CallClass::Inference => &self.inference,
            CallClass::Other => &self.other,
        }
    }
}

/// Calls of one class.
struct ClassCalls {
    /// A packed load.
    open: AtomicU64,
    /// What `grant` holds, packed.
    granted: AtomicU64,
    grant: Mutex<CallGrant>,
}

impl ClassCalls {
    fn new(limit: &'static OpenCallLimit) -> Self {
        let grant = Mutex::new(CallGrant::empty(limit));
        Self { open: AtomicU64::new(0), granted: AtomicU64::new(0), grant }
    }

    fn open(&self) -> CallLoad {
        CallLoad::unpack(self.open.load(SeqCst))
    }

    fn granted(&self) -> CallLoad {
        CallLoad::unpack(self.granted.load(SeqCst))
    }

    fn begin(&self, class: CallClass, bytes: usize) -> Result<()> {
        let call = CallLoad { calls: 1, bytes }.pack();
        let open = CallLoad::unpack(self.open.fetch_add(call, SeqCst) + call);
        // SeqCst: either this sees what `trim` has left, or that sees this call.
        if open.fits(self.granted()) {
            return Ok(());
        }
        let grown = self.grow(class, open);
        if grown.is_err() {
            self.open.fetch_sub(call, SeqCst);
        }
        grown
    }

    #[cold]
    fn grow(&self, class: CallClass, open: CallLoad) -> Result<()> {
        let mut grant = self.grant.lock();
        let unrefused = class.unrefused();
        let ahead = open.ahead(MAX_AHEAD);
        let grown = if open.fits(unrefused) {
            let ahead = ahead.min(unrefused);
            grant.grow_beyond(ahead.calls, ahead.bytes);
            Ok(())
        } else {
            match grant.grow_to(ahead.calls, ahead.bytes) {
                Ok(()) => Ok(()),
                Err(_) => grant.grow_to(open.calls, open.bytes),
            }
        };
        self.granted.store(granted_load(&grant).pack(), SeqCst);
        grown.map_err(|refusal| refusal.refuse())
    }

    fn trim(&self) {
        if self.granted().fits(self.open().ahead(MAX_AHEAD)) {
            return;
        }
        let mut grant = self.grant.lock();
        let open = self.open();
        self.granted.store(open.min(granted_load(&grant)).pack(), SeqCst);
        if self.open().fits(open) {
            grant.shrink_to(open.calls, open.bytes);
        }
        self.granted.store(granted_load(&grant).pack(), SeqCst);
    }
}

fn granted_load(grant: &CallGrant) -> CallLoad {
    CallLoad { calls: grant.calls(), bytes: grant.bytes() }
}

#[cfg(test)]
#[path = "open_calls_tests.rs"]
mod tests;
