//! `trtc_completion_queue`: completed calls for a thread that waits on a file descriptor, such as
//! that of an event loop. It takes many of them in one call, and no thread of the library runs code
//! of the program.

use super::client::{Error, V2Client};
use super::infer::{CallbackUser, to_handles};
use super::request::{RawRequest, read_request};
use super::result::V2Result;
use crate::arguments::result_place;
use crate::failure::{ClientFailure, Outcome, guard_call, ignore_panic};
use crate::handle::{HandleObject, ObjectHandle};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

pub struct CompletionQueue {
    completed: Mutex<VecDeque<CallCompletion>>,
    /// Readable while calls wait to be taken.
    event: OwnedFd,
}

struct CallCompletion {
    user: CallbackUser,
    number: u64,
    outcome: Outcome<V2Result>,
}

impl HandleObject for CompletionQueue {
    const NAME: &'static str = "completion queue";
}

/// `trtc_completion`.
#[repr(C)]
pub struct RawCompletion {
    user: *mut c_void,
    call: u64,
    error: Error,
    result: ObjectHandle<V2Result>,
}

impl CompletionQueue {
    fn new() -> Outcome<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| ClientFailure::Internal(format!("cannot create an eventfd: {e}")))?;
        Ok(Self { completed: Mutex::default(), event })
    }

    fn add(&self, completed: CallCompletion) {
        let mut all = self.completed.lock().unwrap_or_else(PoisonError::into_inner);
        let first = all.is_empty();
        all.push_back(completed);
        drop(all);
        if first {
            // It fails only when the number is at its limit: then it is readable anyway.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// Takes at most `most`. The descriptor is no longer readable once none is left.
    fn take(&self, most: usize) -> Vec<CallCompletion> {
        let mut all = self.completed.lock().unwrap_or_else(PoisonError::into_inner);
        let count = most.min(all.len());
        let taken = all.drain(..count).collect();
        if all.is_empty() {
            // Not readable if the write of the first one is still to come: that causes one call
            // that takes nothing.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
        taken
    }
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_completion_queue_new(
    place: *mut ObjectHandle<CompletionQueue>,
    descriptor: *mut c_int,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (place, descriptor) =
            unsafe { (result_place(place, "queue")?, result_place(descriptor, "descriptor")?) };
        let queue = CompletionQueue::new()?;
        descriptor.write(queue.event.as_raw_fd());
        place.write(ObjectHandle::new(Arc::new(queue)));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_completion_queue_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_completion_queue_take(
    queue: ObjectHandle<CompletionQueue>,
    places: *mut MaybeUninit<RawCompletion>,
    capacity: usize,
    count: *mut usize,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let count = unsafe { result_place(count, "count")? };
        count.write(0);
        if places.is_null() && capacity > 0 {
            return Err(ClientFailure::argument("the array of completions is NULL"));
        }
        let taken = queue.get()?.take(capacity);
        count.write(taken.len());
        for (i, CallCompletion { user, number, outcome }) in taken.into_iter().enumerate() {
            let (error, result) = to_handles(outcome.map(Some));
            let completion = RawCompletion { user: user.0, call: number, error, result };
            // SAFETY: `take` returns at most `capacity` elements, for which the caller has places.
            unsafe { (*places.add(i)).write(completion) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_completion_queue_free(queue: ObjectHandle<CompletionQueue>) {
    ignore_panic((), || drop(queue.release()));
}

/// # Safety
/// See [`trtc_completion_queue_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_infer_queued(
    client: ObjectHandle<V2Client>,
    raw: *const RawRequest,
    queue: ObjectHandle<CompletionQueue>,
    user: *mut c_void,
    number: *mut u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function: the memory stays until the completion was taken.
        let (client, queue, (request, borrow)) =
            unsafe { (client.get()?, queue.get()?, read_request(raw, false)?) };
        let user = CallbackUser(user);
        // Held until the call is listed; its completion waits for it.
        let mut calls = client.calls();
        calls.last += 1;
        let id = calls.last;
        // SAFETY: the caller promises that `number` is NULL or may be written.
        if let Ok(place) = unsafe { result_place(number, "call") } {
            place.write(id);
        }
        let listed = client.calls.clone();
        let started = client.client.infer_then(request, borrow, move |response| {
            listed.lock().unwrap_or_else(PoisonError::into_inner).outstanding.remove(&id);
            let outcome = response.map(V2Result::new).map_err(ClientFailure::Client);
            queue.add(CallCompletion { user, number: id, outcome });
        });
        calls.outstanding.insert(id, started?);
        Ok(())
    })
}
