//! Host entries for a whole batch: gathers inputs, finishes the batch.

use super::guard::{guard, put};
use crate::error::Error as HostError;
use crate::plugin::batch::frame::Frame;
use crate::plugin::text::PluginError;
use trtserver_plugin_api::abi::host::gather_mode;
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{Buf, Error, Event, Memory, memory_type};

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
