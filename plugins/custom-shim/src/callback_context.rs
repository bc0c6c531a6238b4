//! Maps the context that a library passes to a callback to the execution it belongs to.
//!
//! A context is a number, not a pointer: the instance's slot, and a serial number that is unique to
//! the payload. A callback with a stale or invalid context therefore finds no execution and
//! accesses no memory.

use crate::session::ExecuteSession;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use trtserver_plugin_api::author::Error;

/// Low bits of a context, which contain the serial number; the slot number is above them.
const SERIAL_BITS: u32 = 48;
const MAX_SLOTS: usize = 1 << (u64::BITS - SERIAL_BITS);

/// All slots ever created; never freed.
static SLOTS: [AtomicPtr<ContextSlot>; MAX_SLOTS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_SLOTS];
static FREE: Mutex<Free> = Mutex::new(Free { slots: Vec::new(), made: 0 });

struct Free {
    slots: Vec<&'static ContextSlot>,
    made: usize,
}

/// One per open instance.
pub struct ContextSlot {
    number: u64,
    /// Locked during a callback: a library may call back from its own threads.
    work: Mutex<Work>,
}

struct Work {
    /// Serial number of the first payload of the execution, and how many there are.
    first: u64,
    count: u64,
    /// Null between executions.
    session: *mut ExecuteSession<'static>,
}

// SAFETY: the session is accessed under the lock only, and its content may be used from any thread,
// one at a time.
unsafe impl Send for Work {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ContextSlot {
    /// Acquires a free slot; release it with [`ContextSlot::release`].
    pub fn acquire() -> Result<&'static ContextSlot, Error> {
        let mut free = lock(&FREE);
        if let Some(slot) = free.slots.pop() {
            return Ok(slot);
        }
        let Some(place) = SLOTS.get(free.made) else {
            return Err(Error::exhausted(format_args!(
                "{MAX_SLOTS} instances of custom libraries are open, which is the maximum"
            )));
        };
        let work = Work { first: 1, count: 0, session: ptr::null_mut() };
        let slot = ContextSlot { number: free.made as u64, work: Mutex::new(work) };
        let slot: &'static ContextSlot = Box::leak(Box::new(slot));
        place.store(ptr::from_ref(slot).cast_mut(), Ordering::Release);
        free.made += 1;
        Ok(slot)
    }

    pub fn release(&'static self) {
        lock(&FREE).slots.push(self);
    }

    /// The context of the first payload of the next execution; the contexts of its other payloads
    /// follow it.
    pub fn next_context(&self) -> CallbackContexts {
        let work = lock(&self.work);
        CallbackContexts(self.number << SERIAL_BITS | (work.first + work.count))
    }

    /// Opens an execution of `count` payloads to callbacks, until the guard is dropped.
    ///
    /// # Safety
    /// The session is valid, and not accessed otherwise, until the guard is dropped.
    pub unsafe fn publish(
        &self,
        session: NonNull<ExecuteSession<'_>>,
        count: usize,
    ) -> PublishedSession<'_> {
        let mut work = lock(&self.work);
        work.first += work.count;
        work.count = count as u64;
        work.session = session.as_ptr().cast();
        PublishedSession(self)
    }
}

/// See [`ContextSlot::publish`].
pub struct PublishedSession<'a>(&'a ContextSlot);

impl Drop for PublishedSession<'_> {
    /// Waits for a callback in progress on another thread.
    fn drop(&mut self) {
        lock(&self.0.work).session = ptr::null_mut();
    }
}

/// The contexts of an execution's payloads.
#[derive(Clone, Copy)]
pub struct CallbackContexts(u64);

impl CallbackContexts {
    pub fn for_payload(self, payload: usize) -> *mut c_void {
        ptr::without_provenance_mut((self.0 + payload as u64) as usize)
    }
}

/// Calls `f` with the session and the index of the payload of that context. `None`: no such payload
/// is executing.
pub fn with_session<R>(
    context: *mut c_void,
    f: impl FnOnce(&mut ExecuteSession<'static>, usize) -> R,
) -> Option<R> {
    let context = context.addr() as u64;
    let slot = SLOTS.get((context >> SERIAL_BITS) as usize)?.load(Ordering::Acquire);
    // SAFETY: null, or a slot, which is never freed.
    let slot = unsafe { slot.as_ref() }?;
    let work = lock(&slot.work);
    let serial = context & ((1 << SERIAL_BITS) - 1);
    let at = serial.checked_sub(work.first).filter(|at| *at < work.count)?;
    // SAFETY: null, or published and not withdrawn, which needs this lock.
    let session = unsafe { work.session.as_mut() }?;
    Some(f(session, at as usize))
}
