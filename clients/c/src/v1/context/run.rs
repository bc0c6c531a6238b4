//! Runs of the stateful form, and the one-call request.

use super::options::{RawOptions, read_options};
use super::{Callback, CallbackUser, Error, StatefulRequest, V1Context};
use crate::arguments::{optional_text, read_array, read_struct, read_text, result_place};
use crate::failure::{ClientFailure, Outcome, guard_call};
use crate::handle::ObjectHandle;
use crate::v1::result::V1Result;
use std::ffi::{c_char, c_void};

/// `TRTC_COPY_INPUTS`.
pub(super) const COPY_INPUTS: u32 = 1;

fn check_flags(flags: u32) -> Outcome<()> {
    if flags & !COPY_INPUTS == 0 {
        return Ok(());
    }
    Err(ClientFailure::argument(format!(
        "flags {flags:#x} has bits that a v1 request does not have"
    )))
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_run(
    context: ObjectHandle<V1Context>,
    flags: u32,
    deadline_us: u64,
    place: *mut ObjectHandle<V1Result>,
) -> Error {
    guard_call(|| {
        check_flags(flags)?;
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result_place(place, "result") }?);
        let mut request = context.stateful();
        request.run.deadline = context.limit(deadline_us);
        place.write(context.finish(&request)?);
        Ok(())
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_run_async(
    context: ObjectHandle<V1Context>,
    flags: u32,
    deadline_us: u64,
    callback: Option<Callback>,
    user: *mut c_void,
    id: *mut u64,
) -> Error {
    guard_call(|| {
        check_flags(flags)?;
        let context = context.get()?;
        let mut request = context.stateful();
        request.run.deadline = context.limit(deadline_us);
        let number = context.start(&request, flags, callback, CallbackUser(user))?;
        // SAFETY: the contract of this function.
        if let Ok(place) = unsafe { result_place(id, "id") } {
            place.write(number);
        }
        Ok(())
    })
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawInput {
    pub(super) name: *const c_char,
    dims: *const i64,
    dim_count: usize,
    data: *const *const u8,
    sizes: *const usize,
    count: usize,
    region: *const c_char,
    region_offset: u64,
    region_byte_size: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawRequest {
    struct_size: usize,
    options: *const RawOptions,
    pub(super) inputs: *const RawInput,
    pub(super) input_count: usize,
    flags: u32,
    deadline_us: u64,
}

impl V1Context {
    /// The request of the one-call form, and its flags.
    ///
    /// # Safety
    /// `raw` is NULL or points to a request as the header describes it.
    #[expect(
        clippy::undocumented_unsafe_blocks,
        reason = "all rest on the contract of the function"
    )]
    pub(super) unsafe fn request(&self, raw: *const RawRequest) -> Outcome<(StatefulRequest, u32)> {
        // SAFETY: every block of this function rests on its contract: the caller passes NULL or a
        // request whose pointers are as the header describes them.
        let raw = unsafe { read_struct(raw, "request") }?;
        check_flags(raw.flags)?;
        let mut request = StatefulRequest { run: self.context.new_run(), order: Vec::new() };
        request.set_options(&unsafe { read_options(raw.options) }?)?;
        request.run.deadline = self.limit(raw.deadline_us);
        for given in unsafe { read_array(raw.inputs, raw.input_count, "inputs") }? {
            let (name, region) = unsafe {
                (
                    read_text(given.name, "an input's name")?,
                    optional_text(given.region, "a region's name")?,
                )
            };
            let input = request.run.input(name)?;
            if !given.dims.is_null() {
                input.set_shape(unsafe { read_array(given.dims, given.dim_count, "dims") }?)?;
            }
            if let Some(region) = region {
                input.set_shared_memory(region, given.region_offset, given.region_byte_size)?;
            }
            let (data, sizes) = unsafe {
                (
                    read_array(given.data, given.count, "data")?,
                    read_array(given.sizes, given.count, "sizes")?,
                )
            };
            for (data, size) in data.iter().zip(sizes) {
                let bytes = unsafe { read_array(*data, *size, "the data of an input") }?;
                unsafe { input.set_borrowed(bytes.as_ptr(), bytes.len()) }?;
            }
        }
        Ok((request, raw.flags))
    }
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_infer(
    context: ObjectHandle<V1Context>,
    request: *const RawRequest,
    place: *mut ObjectHandle<V1Result>,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result_place(place, "result") }?);
        // SAFETY: the caller promises that `request` is NULL or points to a request as the header
        // describes it.
        let (request, _) = unsafe { context.request(request) }?;
        place.write(context.finish(&request)?);
        Ok(())
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_infer_async(
    context: ObjectHandle<V1Context>,
    request: *const RawRequest,
    callback: Option<Callback>,
    user: *mut c_void,
    id: *mut u64,
) -> Error {
    guard_call(|| {
        let context = context.get()?;
        // SAFETY: the contract of this function.
        let (request, flags) = unsafe { context.request(request) }?;
        let number = context.start(&request, flags, callback, CallbackUser(user))?;
        // SAFETY: the caller promises that `id` is NULL or may be written.
        if let Ok(place) = unsafe { result_place(id, "id") } {
            place.write(number);
        }
        Ok(())
    })
}
