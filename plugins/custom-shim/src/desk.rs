//! Where callbacks find the execution that they belong to.
//!
//! A context that a library gets is no pointer but a number: the instance's desk, and a serial number
//! that no other payload ever had. A callback that comes too late, from a library that kept a context, or
//! with nonsense therefore finds nothing, and touches nothing.

use crate::session::Session;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use trtserver_plugin_api::author::Error;

/// Bits of a context that hold the serial number; the desk's number is above them.
const SERIAL_BITS: u32 = 48;
const DESKS_MAX: usize = 1 << (u64::BITS - SERIAL_BITS);

/// All desks that were ever needed; never freed.
static DESKS: [AtomicPtr<Desk>; DESKS_MAX] = [const { AtomicPtr::new(ptr::null_mut()) }; DESKS_MAX];
static FREE: Mutex<Free> = Mutex::new(Free { desks: Vec::new(), made: 0 });

struct Free {
    desks: Vec<&'static Desk>,
    made: usize,
}

/// One for each open instance.
pub struct Desk {
    number: u64,
    /// Locked for the time of one callback: a library may call back from threads of its own.
    work: Mutex<Work>,
}

struct Work {
    /// Serial number of the first payload of the execution, and how many there are.
    first: u64,
    count: u64,
    /// Null between executions.
    session: *mut Session<'static>,
}

// SAFETY: the session is reached under the lock only, and everything in it may be used from any thread
// as long as one does at a time: host calls of a response may come from any thread.
unsafe impl Send for Work {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// A desk that nobody has. Give it back with [`Desk::leave`].
    pub fn take() -> Result<&'static Desk, Error> {
        let mut free = lock(&FREE);
        if let Some(desk) = free.desks.pop() {
            return Ok(desk);
        }
        let Some(place) = DESKS.get(free.made) else {
            return Err(Error::exhausted(format_args!(
                "{DESKS_MAX} instances of custom libraries are open; there cannot be more"
            )));
        };
        let work = Work { first: 1, count: 0, session: ptr::null_mut() };
        let desk = Desk { number: free.made as u64, work: Mutex::new(work) };
        let desk: &'static Desk = Box::leak(Box::new(desk));
        place.store(ptr::from_ref(desk).cast_mut(), Ordering::Release);
        free.made += 1;
        Ok(desk)
    }

    pub fn leave(&'static self) {
        lock(&FREE).desks.push(self);
    }

    /// The context of the first payload of the next execution; those of the others follow it.
    pub fn next_context(&self) -> Contexts {
        let work = lock(&self.work);
        Contexts(self.number << SERIAL_BITS | (work.first + work.count))
    }

    /// Opens an execution of `count` payloads to callbacks, until the guard is dropped.
    ///
    /// # Safety
    /// The session is valid, and touched by nobody else, until the guard is dropped.
    pub unsafe fn publish(&self, session: NonNull<Session<'_>>, count: usize) -> Published<'_> {
        let mut work = lock(&self.work);
        work.first += work.count;
        work.count = count as u64;
        work.session = session.as_ptr().cast();
        Published(self)
    }
}

/// See [`Desk::publish`].
pub struct Published<'a>(&'a Desk);

impl Drop for Published<'_> {
    /// Waits for a callback that is under way on another thread.
    fn drop(&mut self) {
        lock(&self.0.work).session = ptr::null_mut();
    }
}

/// The contexts of an execution's payloads.
#[derive(Clone, Copy)]
pub struct Contexts(u64);

impl Contexts {
    pub fn of(self, payload: usize) -> *mut c_void {
        ptr::without_provenance_mut((self.0 + payload as u64) as usize)
    }
}

/// Does `f` with the payload of that context, by its place in the session. `None`: no such payload is being executed.
pub fn with<R>(
    context: *mut c_void,
    f: impl FnOnce(&mut Session<'static>, usize) -> R,
) -> Option<R> {
    let context = context.addr() as u64;
    let desk = DESKS.get((context >> SERIAL_BITS) as usize)?.load(Ordering::Acquire);
    // SAFETY: null, or a desk, which is never freed.
    let desk = unsafe { desk.as_ref() }?;
    let work = lock(&desk.work);
    let serial = context & ((1 << SERIAL_BITS) - 1);
    let at = serial.checked_sub(work.first).filter(|at| *at < work.count)?;
    // SAFETY: null, or published and not withdrawn, which needs this lock.
    let session = unsafe { work.session.as_mut() }?;
    Some(f(session, at as usize))
}
