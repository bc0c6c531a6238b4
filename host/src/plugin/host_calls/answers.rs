//! Host entries for answers: responses and their outputs, ends of replies, releases of requests.

use super::{guard, guard_value};
use crate::error::{Error as HostError, Result};
use crate::plugin::frame::{Frame, Slot};
use crate::plugin::outputs::{Building, Donation};
use crate::plugin::text::{PluginError, read};
use crate::request::{Parameter, Reply as HostReply};
use std::sync::Arc;
use trtserver_plugin_api::abi::call::Batch;
use trtserver_plugin_api::abi::host::{Release, send_flags};
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Param, Place, Reply, Request, Response, Str, param, place,
};

pub(super) unsafe extern "C" fn request_release(request: *mut Request, _after: *mut Event) {
    guard_value((), || {
        // SAFETY: a request that was not released yet is a slot of a living frame.
        let released = unsafe { request.cast::<Slot>().as_ref() }.is_some_and(|s| unsafe {
            // SAFETY: as above.
            s.release()
        });
        if !released {
            tracing::warn!("a backend released a request twice");
        }
    });
}

pub(super) unsafe extern "C" fn reply_retain(reply: *mut Reply) {
    guard_value((), || {
        let reply = reply.cast::<HostReply>().cast_const();
        // SAFETY: a reply is an `Arc`'s contents and is alive while the plugin may use it.
        unsafe {
            Arc::increment_strong_count(reply);
            (*reply).retain(true);
        }
    });
}

pub(super) unsafe extern "C" fn reply_release(reply: *mut Reply) {
    guard_value((), || {
        let reply = reply.cast::<HostReply>().cast_const();
        // SAFETY: pairs with a retain.
        unsafe {
            (*reply).retain(false);
            Arc::decrement_strong_count(reply);
        }
    });
}

/// The reply behind a handle.
///
/// # Safety
/// `reply` is null or alive.
unsafe fn host_reply<'a>(reply: *mut Reply) -> Result<&'a HostReply> {
    // SAFETY: by the caller's promise.
    unsafe { reply.cast::<HostReply>().as_ref() }
        .ok_or_else(|| HostError::invalid("no reply was given"))
}

/// The response behind a handle.
///
/// # Safety
/// `response` is null or was made by `response_new` and neither sent nor dropped.
unsafe fn building<'a>(response: *mut Response) -> Result<&'a mut Building> {
    // SAFETY: by the caller's promise; a response belongs to one thread at a time.
    unsafe { response.cast::<Building>().as_mut() }
        .ok_or_else(|| HostError::invalid("no response was given"))
}

pub(super) unsafe extern "C" fn response_new(
    reply: *mut Reply,
    out: *mut *mut Response,
) -> *mut Error {
    guard(|| {
        // SAFETY: the reply is alive while the plugin may use it.
        let host = unsafe { host_reply(reply) }?;
        if host.is_ended() {
            return Err(HostError::internal("a response was begun after the reply had ended"));
        }
        if !host.begin_response() {
            return Err(HostError::internal(
                "a response was begun before the previous one of the same reply was sent or dropped",
            ));
        }
        let ptr: *const HostReply = host;
        // SAFETY: a reply is an `Arc`'s contents.
        let reply = unsafe {
            Arc::increment_strong_count(ptr);
            Arc::from_raw(ptr)
        };
        let response = Box::into_raw(Box::new(Building::new(reply)));
        // SAFETY: the plugin passes room for one handle.
        unsafe { out.write(response.cast()) };
        Ok(())
    })
}

pub(super) unsafe extern "C" fn response_drop(response: *mut Response) {
    if !response.is_null() {
        // SAFETY: a response that was neither sent nor dropped.
        guard_value((), || drop(unsafe { Box::from_raw(response.cast::<Building>()) }));
    }
}

/// # Safety
/// `shape` is null or valid for `rank` numbers.
unsafe fn dims<'a>(rank: u32, shape: *const i64) -> &'a [i64] {
    if rank == 0 || shape.is_null() {
        return &[];
    }
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts(shape, rank as usize) }
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn output_alloc(
    response: *mut Response,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    bytes: u64,
    _wish: Place,
    out: *mut Buf,
) -> *mut Error {
    guard(|| {
        // SAFETY: handle, text and shape are valid during the call.
        let (response, name, shape) =
            unsafe { (building(response)?, read(name), dims(rank, shape)) };
        let ptr = response.alloc(&name, dtype, shape, bytes)?;
        let (ptr, bytes) = ptr.map_or((std::ptr::null_mut(), 0), |ptr| (ptr, bytes));
        let buf = Buf { ptr, bytes, place: Place::CPU, ready: std::ptr::null_mut(), lease: 0 };
        // SAFETY: the plugin passes room for one buffer.
        unsafe { out.write(buf) };
        Ok(())
    })
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn output_adopt(
    response: *mut Response,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    parts: *const Buf,
    n_parts: u32,
    release: Release,
    ctx: *mut u8,
) -> *mut Error {
    // First of all: whatever happens below, the donation is released exactly once.
    let donation = Donation::new(release, ctx);
    guard(move || {
        // SAFETY: handle, text and shape are valid during the call.
        let (response, name, shape) =
            unsafe { (building(response)?, read(name), dims(rank, shape)) };
        let parts = if parts.is_null() {
            &[]
        } else {
            // SAFETY: the plugin passes `n_parts` buffers.
            unsafe { std::slice::from_raw_parts(parts, n_parts as usize) }
        };
        if let Some(far) =
            parts.iter().find(|p| !matches!(p.place.kind, place::CPU | place::PINNED))
        {
            return Err(HostError::unsupported(format!(
                "output '{name}' was donated in memory of kind {}, this host takes CPU memory",
                far.place.kind
            )));
        }
        response.adopt(&name, dtype, shape, parts, donation)
    })
}

pub(super) unsafe extern "C" fn response_param(
    response: *mut Response,
    given: *const Param,
) -> *mut Error {
    guard(|| {
        // SAFETY: handle and parameter are valid during the call.
        let (response, given) = unsafe {
            let given = given.as_ref();
            (
                building(response)?,
                given.ok_or_else(|| HostError::invalid("no parameter was given"))?,
            )
        };
        // SAFETY: texts are valid during the call.
        let (key, text) = unsafe { (read(given.key), read(given.text)) };
        let value = match given.kind {
            param::STRING => Parameter::String(text),
            param::INT => Parameter::Int(given.bits as i64),
            param::BOOL => Parameter::Bool(given.bits != 0),
            param::DOUBLE => Parameter::Double(f64::from_bits(given.bits)),
            param::UINT => Parameter::Int(i64::try_from(given.bits).map_err(|_| {
                HostError::unsupported(format!("response parameter '{key}' exceeds 63 bits"))
            })?),
            kind => {
                return Err(HostError::unsupported(format!(
                    "response parameter '{key}' has kind {kind}; strings, integers, booleans and doubles are possible"
                )));
            }
        };
        response.parameters.push((key, value));
        Ok(())
    })
}

pub(super) unsafe extern "C" fn response_send(
    response: *mut Response,
    flags: u32,
    error: *const Error,
    _after: *mut Event,
) -> *mut Error {
    guard(|| {
        if response.is_null() {
            return Err(HostError::invalid("no response was given"));
        }
        // SAFETY: a response that was neither sent nor dropped; sending takes it.
        let response = unsafe { Box::from_raw(response.cast::<Building>()) };
        // SAFETY: null or a living error, which stays the sender's.
        let error = unsafe { error.cast::<PluginError>().as_ref() }.map(PluginError::to_error);
        response.send(flags & send_flags::LAST != 0, error)
    })
}

pub(super) unsafe extern "C" fn reply_end(reply: *mut Reply, error: *const Error) -> *mut Error {
    guard(|| {
        // SAFETY: the reply is alive; the error is null or alive and stays the sender's.
        let (reply, error) = unsafe { (host_reply(reply)?, error.cast::<PluginError>().as_ref()) };
        match error {
            Some(error) => reply.end(Err(error.to_error())),
            None => reply.end(Ok(None)),
        }
    })
}

pub(super) unsafe extern "C" fn batch_send(
    batch: *const Batch,
    error: *const Error,
    _after: *mut Event,
) -> *mut Error {
    guard(|| {
        if batch.is_null() {
            return Err(HostError::invalid("no batch was given"));
        }
        // SAFETY: a batch whose `execute` runs belongs to a living frame; the error is null or alive.
        let (frame, error) =
            unsafe { (Frame::of_batch(batch), error.cast::<PluginError>().as_ref()) };
        match error {
            Some(error) => frame.fail(&error.to_error()),
            None => {
                frame.settle(&|reply| {
                    let model = &reply.signature().model;
                    HostError::internal(format!(
                        "model '{model}': its backend ended the batch without answering the request"
                    ))
                });
            }
        }
        Ok(())
    })
}
