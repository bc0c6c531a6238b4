//! The inputs of the stateful form: shape, data, shared memory.

use super::{Error, V1Context};
use crate::arguments::{read_array, read_text, result_place};
use crate::failure::{Outcome, guard_call};
use crate::handle::ObjectHandle;
use std::ffi::c_char;

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_input_reset(context: ObjectHandle<V1Context>, input: usize) -> Error {
    guard_call(|| {
        context.get()?.change(input, |input| {
            input.reset();
            Ok(())
        })
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_input_set_shape(
    context: ObjectHandle<V1Context>,
    input: usize,
    dims: *const i64,
    count: usize,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let dims = unsafe { read_array(dims, count, "dims") }?;
        context.get()?.change(input, |input| input.set_shape(dims))
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_input_add_data(
    context: ObjectHandle<V1Context>,
    input: usize,
    data: *const u8,
    size: usize,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let data = unsafe { read_array(data, size, "data") }?;
        // SAFETY: the caller promises not to change or free the memory until the input is reset.
        context
            .get()?
            .change(input, |input| unsafe { input.set_borrowed(data.as_ptr(), data.len()) })
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_input_add_strings(
    context: ObjectHandle<V1Context>,
    input: usize,
    strings: *const *const u8,
    sizes: *const usize,
    count: usize,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (strings, sizes) =
            unsafe { (read_array(strings, count, "strings")?, read_array(sizes, count, "sizes")?) };
        let pairs = strings.iter().zip(sizes);
        // SAFETY: the caller promises that each string points to as many bytes as `sizes` says.
        let strings = pairs.map(|(text, size)| unsafe { read_array(*text, *size, "a string") });
        let strings = strings.collect::<Outcome<Vec<_>>>()?;
        context.get()?.change(input, |input| input.set_strings(&strings))
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_input_set_region(
    context: ObjectHandle<V1Context>,
    input: usize,
    region: *const c_char,
    offset: u64,
    byte_size: u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let region = unsafe { read_text(region, "the region's name") }?;
        context.get()?.change(input, |input| input.set_shared_memory(region, offset, byte_size))
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_input_sizes(
    context: ObjectHandle<V1Context>,
    input: usize,
    byte_size: *mut i64,
    total: *mut u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (byte_size, total) =
            unsafe { (result_place(byte_size, "byte_size")?, result_place(total, "total")?) };
        context.get()?.change(input, |input| {
            byte_size.write(input.byte_size());
            total.write(input.total_byte_size());
            Ok(())
        })
    })
}
