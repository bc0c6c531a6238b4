//! Host entries for a whole batch: gathers inputs, finishes the batch, divides it into parts.

use super::devices::take_event;
use super::guard::{guard_entry, put_out};
use super::reported_memory::memory_name;
use crate::batch::frame::Frame;
use crate::batch::memory::abi_memory;
use crate::batch::parts;
use crate::text::PluginError;
use trtserver_base::error::Error as HostError;
use trtserver_plugin_api::abi::extensions::BatchPartsExtension;
use trtserver_plugin_api::abi::host::gather_mode;
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{Buf, Error, Event, Memory, memory_type};

pub(super) unsafe extern "C" fn gather(
    batch: *const Batch,
    input: u32,
    preferred_memory: Memory,
    mode: u32,
    stream: *mut u8,
    out: *mut Buf,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a batch that was given to `execute`.
        let frame = unsafe { Frame::from_batch(batch)? };
        if mode != gather_mode::ROWS {
            return Err(HostError::unsupported(format!(
                "this host gathers rows one after another (mode 0), mode {mode} was requested"
            )));
        }
        let on_gpu = match preferred_memory.memory_type {
            memory_type::CPU | memory_type::PINNED => false,
            _ if frame.gpu().is_some_and(|g| abi_memory(g.location()) == preferred_memory) => true,
            _ => {
                return Err(HostError::unsupported(format!(
                    "this host gathers into CPU memory and that of the instance's GPU, {} was requested",
                    memory_name(preferred_memory)
                )));
            }
        };
        // SAFETY: null or a stream, by the interface.
        let buf = unsafe { frame.gather(input, on_gpu, stream)? };
        // SAFETY: null or valid for writing one buffer.
        unsafe { put_out(out, buf) }
    })
}

pub(super) static PARTS: BatchPartsExtension =
    BatchPartsExtension { size: size_of::<BatchPartsExtension>() as u64, begin: begin_part };

unsafe extern "C" fn begin_part(batch: *mut Batch, first: u32, n: u32) -> *mut Error {
    // SAFETY: null or a batch that was given to `execute`.
    guard_entry(|| parts::begin_part(unsafe { Frame::from_batch(batch)? }, batch, first, n))
}

pub(super) unsafe extern "C" fn batch_finish(
    batch: *const Batch,
    error: *const Error,
    after: *mut Event,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a batch that was given to `execute`; the error is null or valid.
        let (frame, error) =
            unsafe { (Frame::from_batch(batch)?, error.cast::<PluginError>().as_ref()) };
        // SAFETY: null or an event that the backend does not use again.
        let after = unsafe { take_event(after) };
        if let Some(after) = &after {
            frame.continue_after(after);
        }
        match error {
            Some(error) => {
                frame.scatter().discard();
                frame.fail_unanswered(&|_| error.to_error());
            }
            None => {
                frame.scatter().send(after.as_deref());
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
