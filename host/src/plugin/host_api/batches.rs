//! Host entries for a whole batch: gathers inputs, scatters outputs, finishes the batch.

use super::responses::{check_readable, dims};
use super::{block, guard, put};
use crate::error::Error as HostError;
use crate::plugin::batch::frame::Frame;
use crate::plugin::batch::memory::Donation;
use crate::plugin::text::{PluginError, read};
use trtserver_plugin_api::abi::host::{Release, gather_mode};
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{Buf, Error, Event, Memory, Str, memory_type};

pub(super) unsafe extern "C" fn gather(
    batch: *const Batch,
    input: u32,
    preferred_memory: Memory,
    mode: u32,
    _stream: *mut u8,
    out: *mut Buf,
) -> *mut Error {
    guard(|| {
        // SAFETY: null or a batch that was given to `execute`.
        let frame = unsafe { Frame::of_batch(batch)? };
        if mode != gather_mode::ROWS {
            return Err(HostError::unsupported(format!(
                "this host gathers rows one after another (mode 0), mode {mode} was requested"
            )));
        }
        if !matches!(preferred_memory.memory_type, memory_type::CPU | memory_type::PINNED) {
            return Err(HostError::unsupported(format!(
                "this host gathers into CPU memory, memory type {} was requested",
                preferred_memory.memory_type
            )));
        }
        let buf = frame.gather(input)?;
        // SAFETY: null or valid for writing one buffer.
        unsafe { put(out, buf) }
    })
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn scatter_alloc(
    batch: *const Batch,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    bytes: u64,
    _preferred_memory: Memory,
    out: *mut Buf,
) -> *mut Error {
    guard(|| {
        // SAFETY: null or a batch that was given to `execute`; text and shape are valid during the call.
        let (frame, name, shape) =
            unsafe { (Frame::of_batch(batch)?, read(name), dims(rank, shape)?) };
        if out.is_null() {
            return Err(HostError::invalid(
                "a host function was called with a null result pointer",
            ));
        }
        let ptr = frame.scatter().alloc(&name, dtype, shape, bytes)?;
        // SAFETY: valid for writing one buffer.
        unsafe { put(out, block(ptr, bytes)) }
    })
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn scatter_adopt(
    batch: *const Batch,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    buf: *const Buf,
    release: Release,
    ctx: *mut u8,
) -> *mut Error {
    // Created first, so that the donation is released exactly once even if a check below fails.
    let donation = Donation::new(release, ctx);
    guard(move || {
        // SAFETY: null or a batch that was given to `execute`; the rest is valid during the call.
        let (frame, name, shape, buf) =
            unsafe { (Frame::of_batch(batch)?, read(name), dims(rank, shape)?, buf.as_ref()) };
        let Some(buf) = buf else {
            return Err(HostError::invalid(format!(
                "output '{name}' was donated as a null buffer"
            )));
        };
        check_readable(&name, std::slice::from_ref(buf))?;
        frame.scatter().adopt(&name, dtype, shape, buf, donation)
    })
}

pub(super) unsafe extern "C" fn batch_finish(
    batch: *const Batch,
    error: *const Error,
    _after: *mut Event,
) -> *mut Error {
    guard(|| {
        // SAFETY: null or a batch that was given to `execute`; the error is null or valid.
        let (frame, error) =
            unsafe { (Frame::of_batch(batch)?, error.cast::<PluginError>().as_ref()) };
        match error {
            Some(error) => {
                frame.scatter().discard();
                frame.fail_unanswered(&|_| error.to_error());
            }
            None => {
                frame.scatter().send();
                frame.fail_unanswered(&|responder| {
                    let model = &responder.context.signature.model;
                    HostError::internal(format!(
                        "model '{model}': its backend ended the batch without responding to the request"
                    ))
                });
            }
        }
        Ok(())
    })
}
