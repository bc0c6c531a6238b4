//! Host entries for answers: responses and their outputs, ends of replies, releases of requests.

use super::{block, guard, guard_value, put};
use crate::error::{Error as HostError, Result};
use crate::plugin::batch::frame::release_request;
use crate::plugin::batch::memory::Donation;
use crate::plugin::batch::slot::Handle;
use crate::plugin::text::{PluginError, lent, read};
use crate::request::Parameter;
use trtserver_plugin_api::abi::host::{Release, send_flags};
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Memory, Param, RequestHandle, Responder, Response, Str, memory_type, param,
};

/// Runs the body of an entry that returns nothing: what is wrong goes to the log.
fn tell(body: impl FnOnce() -> Result<()>) {
    guard_value((), || {
        if let Err(e) = body() {
            tracing::error!("a backend misuses the interface: {e}");
        }
    });
}

pub(super) unsafe extern "C" fn request_release(request: *mut RequestHandle, _after: *mut Event) {
    // SAFETY: null or a handle of ours.
    tell(|| release_request(unsafe { Handle::of(request) }?));
}

pub(super) unsafe extern "C" fn responder_detach(reply: *mut Responder) {
    // SAFETY: null or a handle of ours.
    tell(|| unsafe { Handle::of(reply) }?.retain());
}

pub(super) unsafe extern "C" fn responder_release(reply: *mut Responder) {
    // SAFETY: null or a handle of ours.
    tell(|| unsafe { Handle::of(reply) }?.release_reply());
}

pub(super) unsafe extern "C" fn response_new(
    reply: *mut Responder,
    out: *mut *mut Response,
) -> *mut Error {
    guard(|| {
        // SAFETY: null or a handle of ours; null or room for one handle.
        let handle = unsafe { Handle::of(reply) }?;
        // SAFETY: as above.
        unsafe { put(out, handle.raw()) }?;
        handle.begin_response()
    })
}

pub(super) unsafe extern "C" fn response_free(response: *mut Response) {
    if !response.is_null() {
        // SAFETY: a handle of ours.
        tell(|| unsafe { Handle::of(response) }?.take_response().map(drop));
    }
}

/// More dimensions than any tensor has: a number that was never a rank.
const MAX_RANK: u32 = 1024;

/// # Safety
/// `shape` is null or valid for `rank` numbers.
pub(super) unsafe fn dims<'a>(rank: u32, shape: *const i64) -> Result<&'a [i64]> {
    match rank {
        0 => Ok(&[]),
        _ if shape.is_null() => Err(HostError::invalid("an output was given without its shape")),
        // SAFETY: by the caller's promise.
        1..=MAX_RANK => Ok(unsafe { std::slice::from_raw_parts(shape, rank as usize) }),
        _ => Err(HostError::invalid(format!("an output was given with {rank} dimensions"))),
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
            unsafe { (Handle::of(response)?, lent(name), dims(rank, shape)?) };
        let ptr = handle.with_response(|r| r.alloc(&name, dtype, shape, bytes))?;
        // SAFETY: null or room for one buffer.
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
    // First of all: whatever happens below, the donation is released exactly once.
    let donation = Donation::new(release, ctx);
    guard(move || {
        // SAFETY: a handle of ours; text and shape are valid during the call.
        let (handle, name, shape) =
            unsafe { (Handle::of(response)?, lent(name), dims(rank, shape)?) };
        let parts = if parts.is_null() {
            &[]
        } else {
            // SAFETY: the plugin passes `n_parts` buffers.
            unsafe { std::slice::from_raw_parts(parts, n_parts as usize) }
        };
        near(&name, parts)?;
        handle.with_response(|r| r.adopt(&name, dtype, shape, parts, donation))
    })
}

/// Refuses memory that this host cannot read.
pub(super) fn near(name: &str, parts: &[Buf]) -> Result<()> {
    match parts
        .iter()
        .find(|p| !matches!(p.memory.memory_type, memory_type::CPU | memory_type::PINNED))
    {
        None => Ok(()),
        Some(far) => Err(HostError::unsupported(format!(
            "output '{name}' was donated in memory of kind {}, this host takes CPU memory",
            far.memory.memory_type
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
        // SAFETY: null or a living error, which stays the sender's.
        let error = unsafe { error.cast::<PluginError>().as_ref() }.map(PluginError::to_error);
        response.send(flags & send_flags::FINAL != 0, error)
    })
}

pub(super) unsafe extern "C" fn responder_finish(
    reply: *mut Responder,
    error: *const Error,
) -> *mut Error {
    guard(|| {
        // SAFETY: null or a handle of ours; the error is null or alive and stays the sender's.
        let (reply, error) =
            unsafe { (Handle::of(reply)?.responder()?, error.cast::<PluginError>().as_ref()) };
        match error {
            Some(error) => reply.finish(Err(error.to_error())),
            None => reply.finish(Ok(None)),
        }
    })
}
