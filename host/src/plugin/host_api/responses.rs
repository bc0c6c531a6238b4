//! Host entries for responders, responses and their outputs, and for the release of requests.

use super::{block, guard, guard_value, put};
use crate::error::{Error as HostError, Result};
use crate::plugin::batch::frame::release_request;
use crate::plugin::batch::memory::Donation;
use crate::plugin::batch::slot::Handle;
use crate::plugin::text::{PluginError, read, read_borrowed};
use crate::request::Parameter;
use trtserver_plugin_api::abi::host::{Release, send_flags};
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Memory, Param, RequestHandle, Responder, Response, Str, memory_type, param,
};

/// Runs the body of an entry that returns nothing; errors are logged.
fn guard_logged(body: impl FnOnce() -> Result<()>) {
    guard_value((), || {
        if let Err(e) = body() {
            tracing::error!("a backend misuses the interface: {e}");
        }
    });
}

pub(super) unsafe extern "C" fn request_release(request: *mut RequestHandle, _after: *mut Event) {
    // SAFETY: null or a handle of ours.
    guard_logged(|| release_request(unsafe { Handle::of(request) }?));
}

pub(super) unsafe extern "C" fn responder_detach(responder: *mut Responder) {
    // SAFETY: null or a handle of ours.
    guard_logged(|| unsafe { Handle::of(responder) }?.retain());
}

pub(super) unsafe extern "C" fn responder_release(responder: *mut Responder) {
    // SAFETY: null or a handle of ours.
    guard_logged(|| unsafe { Handle::of(responder) }?.release_responder());
}

pub(super) unsafe extern "C" fn response_new(
    responder: *mut Responder,
    out: *mut *mut Response,
) -> *mut Error {
    guard(|| {
        // SAFETY: null or a handle of ours; null or valid for writing one handle.
        let handle = unsafe { Handle::of(responder) }?;
        // SAFETY: as above.
        unsafe { put(out, handle.raw()) }?;
        handle.begin_response()
    })
}

pub(super) unsafe extern "C" fn response_free(response: *mut Response) {
    if !response.is_null() {
        // SAFETY: a handle of ours.
        guard_logged(|| unsafe { Handle::of(response) }?.take_response().map(drop));
    }
}

/// More dimensions than any tensor has; a greater rank is garbage.
const MAX_RANK: u32 = 1024;

/// # Safety
/// `shape` is null or valid for `rank` numbers.
pub(super) unsafe fn dims<'a>(rank: u32, shape: *const i64) -> Result<&'a [i64]> {
    match rank {
        0 => Ok(&[]),
        _ if shape.is_null() => Err(HostError::invalid("an output has a null shape")),
        // SAFETY: by the caller's promise.
        1..=MAX_RANK => Ok(unsafe { std::slice::from_raw_parts(shape, rank as usize) }),
        _ => Err(HostError::invalid(format!("an output has {rank} dimensions"))),
    }
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn output_alloc(
    response: *mut Response,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    bytes: u64,
    _preferred_memory: Memory,
    out: *mut Buf,
) -> *mut Error {
    guard(|| {
        // SAFETY: a handle of ours; text and shape are valid during the call.
        let (handle, name, shape) =
            unsafe { (Handle::of(response)?, read_borrowed(name), dims(rank, shape)?) };
        let ptr = handle.with_response(|r| r.alloc(&name, dtype, shape, bytes))?;
        // SAFETY: null or valid for writing one buffer.
        unsafe { put(out, block(ptr, bytes)) }
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
    // Created first, so that the donation is released exactly once even if a check below fails.
    let donation = Donation::new(release, ctx);
    guard(move || {
        // SAFETY: a handle of ours; text and shape are valid during the call.
        let (handle, name, shape) =
            unsafe { (Handle::of(response)?, read_borrowed(name), dims(rank, shape)?) };
        let parts = if parts.is_null() {
            &[]
        } else {
            // SAFETY: the plugin passes `n_parts` buffers.
            unsafe { std::slice::from_raw_parts(parts, n_parts as usize) }
        };
        check_readable(&name, parts)?;
        handle.with_response(|r| r.adopt(&name, dtype, shape, parts, donation))
    })
}

/// Refuses memory that the host cannot read.
pub(super) fn check_readable(name: &str, parts: &[Buf]) -> Result<()> {
    match parts
        .iter()
        .find(|p| !matches!(p.memory.memory_type, memory_type::CPU | memory_type::PINNED))
    {
        None => Ok(()),
        Some(part) => Err(HostError::unsupported(format!(
            "output '{name}' was donated in memory of type {}, this host supports CPU memory only",
            part.memory.memory_type
        ))),
    }
}

pub(super) unsafe extern "C" fn response_param(
    response: *mut Response,
    given: *const Param,
) -> *mut Error {
    guard(|| {
        // SAFETY: a handle of ours; the parameter is valid during the call.
        let (handle, given) = unsafe { (Handle::of(response)?, given.as_ref()) };
        let given = given.ok_or_else(|| HostError::invalid("no parameter was given"))?;
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
        handle.with_response(|r| {
            r.parameters.push((key, value));
            Ok(())
        })
    })
}

pub(super) unsafe extern "C" fn response_send(
    response: *mut Response,
    flags: u32,
    error: *const Error,
    _after: *mut Event,
) -> *mut Error {
    guard(|| {
        // SAFETY: null or a handle of ours.
        let response = unsafe { Handle::of(response) }?.take_response()?;
        // SAFETY: null or a valid error, which the backend keeps.
        let error = unsafe { error.cast::<PluginError>().as_ref() }.map(PluginError::to_error);
        response.send(flags & send_flags::FINAL != 0, error)
    })
}

pub(super) unsafe extern "C" fn responder_finish(
    responder: *mut Responder,
    error: *const Error,
) -> *mut Error {
    guard(|| {
        // SAFETY: null or a handle of ours; the error is null or valid, and the backend keeps it.
        let (responder, error) =
            unsafe { (Handle::of(responder)?.responder()?, error.cast::<PluginError>().as_ref()) };
        match error {
            Some(error) => responder.finish(Err(error.to_error())),
            None => responder.finish(Ok(None)),
        }
    })
}
