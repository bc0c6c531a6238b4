//! Inference of v2, waiting and asynchronous.

use super::client::{Error, V2Client};
use super::request::{RawRequest, request};
use super::result::V2Result;
use crate::arguments::result;
use crate::failure::{ErrorObject, Failure, Outcome, call};
use crate::handle::Handle;
use std::ffi::c_void;
use std::sync::{Arc, PoisonError};

pub type Callback =
    unsafe extern "C" fn(user: *mut c_void, call: u64, error: Error, result: Handle<V2Result>);

/// What a callback is called with. The caller answers for its use on the callback thread.
#[derive(Clone, Copy)]
pub struct User(pub *mut c_void);

// SAFETY: only passed on.
unsafe impl Send for User {}
// SAFETY: the pointer is not followed here; a shared reference gives out only its value.
unsafe impl Sync for User {}

/// Calls the callback with what it owns from then on.
pub fn deliver(callback: Callback, user: User, number: u64, outcome: Outcome<Option<V2Result>>) {
    let (error, result) = parts_of(outcome);
    // SAFETY: the caller gave a function of this type, with what it is called with.
    unsafe { callback(user.0, number, error, result) };
}

/// An outcome as C receives it: error and result, which it owns.
pub fn parts_of(outcome: Outcome<Option<V2Result>>) -> (Error, Handle<V2Result>) {
    match outcome {
        Ok(None) => (Handle::NULL, Handle::NULL),
        Ok(Some(result)) => (Handle::NULL, Handle::new(Arc::new(result))),
        Err(failure) => (ErrorObject::handle(&failure), Handle::NULL),
    }
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_infer(
    client: Handle<V2Client>,
    raw: *const RawRequest,
    place: *mut Handle<V2Result>,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function. The borrow is released before the call returns.
        let (client, place, (request, borrow)) =
            unsafe { (client.get()?, result(place, "result")?, request(raw, false)?) };
        let response = client.client.infer_borrowed(request, &borrow)?;
        place.write(Handle::new(Arc::new(V2Result::new(response))));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_infer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_infer_async(
    client: Handle<V2Client>,
    raw: *const RawRequest,
    callback: Option<Callback>,
    user: *mut c_void,
    number: *mut u64,
) -> Error {
    call(|| {
        let callback = callback.ok_or_else(|| Failure::argument("the callback is NULL"))?;
        // SAFETY: the contract of this function: the memory stays until the callback was called.
        let (client, (request, borrow)) = unsafe { (client.get()?, request(raw, false)?) };
        let user = User(user);
        // Held until the call is listed; the callback waits for it.
        let mut calls = client.calls();
        calls.last += 1;
        let id = calls.last;
        // SAFETY: the caller promises that `number` is NULL or may be written. It is written first:
        // the callback may come before this call returns.
        if let Ok(place) = unsafe { result(number, "call") } {
            place.write(id);
        }
        let listed = client.calls.clone();
        let started = client.client.infer_async(request, borrow, move |response| {
            let user = user;
            listed.lock().unwrap_or_else(PoisonError::into_inner).outstanding.remove(&id);
            let outcome = response.map(|response| Some(V2Result::new(response)));
            deliver(callback, user, id, outcome.map_err(Failure::Client));
        });
        calls.outstanding.insert(id, started?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v2_cancel(client: Handle<V2Client>, number: u64) -> Error {
    call(|| {
        // A call that has completed is not listed.
        if let Some(call) = client.get()?.calls().outstanding.get(&number) {
            call.cancel();
        }
        Ok(())
    })
}
