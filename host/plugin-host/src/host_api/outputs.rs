//! Host entries for outputs, which belong to one response or, when scattered, to all requests of a
//! batch.

use super::guard::{NO_BLOCK, check_result_pointer, guard_entry, put_out};
use crate::batch::frame::Frame;
use crate::batch::memory::Donation;
use crate::batch::slot::ExecutingHandle;
use crate::text::read_borrowed;
use std::borrow::Cow;
use trtserver_base::error::{Error as HostError, Result};
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{Buf, Error, MAX_RANK, Memory, Response, Str};

/// Reads name and shape of an output.
///
/// # Safety
/// `name` is valid during `'a`; `shape` is null or valid for `rank` numbers during `'a`.
unsafe fn name_and_shape<'a>(
    name: Str,
    rank: u32,
    shape: *const i64,
) -> Result<(Cow<'a, str>, &'a [i64])> {
    // SAFETY: by the caller's promise.
    let name = unsafe { read_borrowed(name) };
    let shape = match rank {
        0 => &[],
        _ if shape.is_null() => return Err(HostError::invalid("an output has a null shape")),
        // SAFETY: by the caller's promise.
        1..=MAX_RANK => unsafe { std::slice::from_raw_parts(shape, rank as usize) },
        _ => return Err(HostError::invalid(format!("an output has {rank} dimensions"))),
    };
    Ok((name, shape))
}

/// Writes the block that `alloc` returns for an output to `out`.
///
/// # Safety
/// The conditions of [`name_and_shape`], which hold during the call; `out` is null or valid for
/// writing one buffer.
unsafe fn alloc_with(
    (name, rank, shape): (Str, u32, *const i64),
    out: *mut Buf,
    alloc: impl FnOnce(&str, &[i64]) -> Result<Option<Buf>>,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: by the caller's promise.
        let (name, shape) = unsafe { name_and_shape(name, rank, shape) }?;
        // Checked before the output is allocated, because an allocated output is part of the
        // response.
        check_result_pointer(out)?;
        let buf = alloc(&name, shape)?.unwrap_or(NO_BLOCK);
        // SAFETY: by the caller's promise.
        unsafe { put_out(out, buf) }
    })
}

/// Passes donated memory to `adopt`; `parts` is empty if it is null.
///
/// # Safety
/// The conditions of [`name_and_shape`], which hold during the call; `parts` is null or valid for
/// `n_parts` buffers.
unsafe fn adopt_with(
    (name, rank, shape): (Str, u32, *const i64),
    (parts, n_parts): (*const Buf, u32),
    (release, ctx): (Release, *mut u8),
    adopt: impl FnOnce(&str, &[i64], &[Buf], Donation) -> Result<()>,
) -> *mut Error {
    // Created first, so that the donation is released exactly once even if a check below fails.
    let donation = Donation::new(release, ctx);
    guard_entry(move || {
        // SAFETY: by the caller's promise.
        let (name, shape) = unsafe { name_and_shape(name, rank, shape) }?;
        let parts = if parts.is_null() {
            &[]
        } else {
            // SAFETY: by the caller's promise.
            unsafe { std::slice::from_raw_parts(parts, n_parts as usize) }
        };
        adopt(&name, shape, parts, donation)
    })
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn output_alloc(
    response: *mut Response,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    bytes: u64,
    preferred_memory: Memory,
    out: *mut Buf,
) -> *mut Error {
    // SAFETY: by the interface; null or a handle of ours.
    unsafe {
        alloc_with((name, rank, shape), out, |name, shape| {
            ExecutingHandle::from_raw(response)?
                .with_response(|r| r.alloc(name, dtype, shape, bytes, preferred_memory))
        })
    }
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
    // SAFETY: by the interface; null or a handle of ours.
    unsafe {
        adopt_with(
            (name, rank, shape),
            (parts, n_parts),
            (release, ctx),
            |name, shape, parts, donation| {
                ExecutingHandle::from_raw(response)?
                    .with_response(|r| r.adopt(name, dtype, shape, parts, donation))
            },
        )
    }
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn scatter_alloc(
    batch: *const Batch,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    bytes: u64,
    preferred_memory: Memory,
    out: *mut Buf,
) -> *mut Error {
    // SAFETY: by the interface; null or a batch that was given to `execute`.
    unsafe {
        alloc_with((name, rank, shape), out, |name, shape| {
            Frame::from_batch(batch)?.scatter().alloc(name, dtype, shape, bytes, preferred_memory)
        })
    }
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
    // SAFETY: by the interface; null or a batch that was given to `execute`.
    unsafe {
        adopt_with((name, rank, shape), (buf, 1), (release, ctx), |name, shape, parts, donation| {
            match parts {
                [buf] => {
                    Frame::from_batch(batch)?.scatter().adopt(name, dtype, shape, buf, donation)
                }
                _ => {
                    Err(HostError::invalid(format!("output '{name}' was donated as a null buffer")))
                }
            }
        })
    }
}
