//! Inference of v2, waiting and asynchronous.

use super::client::{Error, V2Client};
use super::request::{RawRequest, read_request};
use super::result::V2Result;
use crate::arguments::result_place;
use crate::failure::{ClientFailure, ErrorObject, Outcome, guard_call};
use crate::handle::ObjectHandle;
use std::ffi::c_void;
use std::sync::{Arc, PoisonError};

pub type Callback = unsafe extern "C" fn(
    user: *mut c_void,
    call: u64,
    error: Error,
    result: ObjectHandle<V2Result>,
);

/// What a callback is called with. The caller answers for its use on the callback thread.
#[derive(Clone, Copy)]
pub struct CallbackUser(pub *mut c_void);

// SAFETY: only passed on.
unsafe impl Send for CallbackUser {}
// SAFETY: the pointer is not followed here; a shared reference gives out only its value.
unsafe impl Sync for CallbackUser {}

/// Calls the callback with what it owns from then on.
pub fn deliver_result(
    callback: Callback,
    user: CallbackUser,
    number: u64,
    outcome: Outcome<Option<V2Result>>,
) {
    let (error, result) = to_handles(outcome);
    // SAFETY: the caller gave a function of this type, with what it is called with.
    unsafe { callback(user.0, number, error, result) };
}

/// An outcome as C receives it: error and result, which it owns.
pub fn to_handles(outcome: Outcome<Option<V2Result>>) -> (Error, ObjectHandle<V2Result>) {
    match outcome {
        Ok(None) => (ObjectHandle::NULL, ObjectHandle::NULL),
        Ok(Some(result)) => (ObjectHandle::NULL, ObjectHandle::new(Arc::new(result))),
        Err(failure) => (ErrorObject::handle(&failure), ObjectHandle::NULL),
    }
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_infer(
    client: ObjectHandle<V2Client>,
    raw: *const RawRequest,
    place: *mut ObjectHandle<V2Result>,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function. The borrow is released before the call returns.
        let (client, place, (request, borrow)) =
            unsafe { (client.get()?, result_place(place, "result")?, read_request(raw, false)?) };
        let response = client.client.infer_borrowed(request, &borrow)?;
        place.write(ObjectHandle::new(Arc::new(V2Result::new(response))));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_infer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_infer_async(
    client: ObjectHandle<V2Client>,
    raw: *const RawRequest,
    callback: Option<Callback>,
    user: *mut c_void,
    number: *mut u64,
) -> Error {
    guard_call(|| {
        let callback = callback.ok_or_else(|| ClientFailure::argument("the callback is NULL"))?;
        // SAFETY: the contract of this function: the memory stays until the callback was called.
        let (client, (request, borrow)) = unsafe { (client.get()?, read_request(raw, false)?) };
        let user = CallbackUser(user);
        // Held until the call is listed; the callback waits for it.
        let mut calls = client.calls();
        calls.last += 1;
        let id = calls.last;
        // SAFETY: the caller promises that `number` is NULL or may be written. It is written first:
        // the callback may come before this call returns.
        if let Ok(place) = unsafe { result_place(number, "call") } {
            place.write(id);
        }
        let listed = client.calls.clone();
        let started = client.client.infer_async(request, borrow, move |response| {
            let user = user;
            listed.lock().unwrap_or_else(PoisonError::into_inner).outstanding.remove(&id);
            let outcome = response.map(|response| Some(V2Result::new(response)));
            deliver_result(callback, user, id, outcome.map_err(ClientFailure::Client));
        });
        calls.outstanding.insert(id, started?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v2_cancel(client: ObjectHandle<V2Client>, number: u64) -> Error {
    guard_call(|| {
        // A call that has completed is not listed.
        if let Some(call) = client.get()?.calls().outstanding.get(&number) {
            call.cancel();
        }
        Ok(())
    })
}
