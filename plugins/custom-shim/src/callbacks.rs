//! The functions that a library calls while it executes, one set for each generation.
//!
//! They validate arguments as far as C allows: a null pointer, an impossible size or shape, or a
//! stale context returns false and is logged.

use crate::backend::log_warning;
use crate::callback_context;
use crate::custom_h::{Context, MEMORY_CPU};
use crate::session::{CallbackFault, CallbackResult, ExecuteSession, OutputShape};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use trtserver_plugin_api::abi::types;

/// A greater rank is refused before the shape is read.
const MAX_RANK: usize = types::MAX_RANK as usize;

/// Runs the body of a callback for the payload that the context names.
fn enter_callback(
    entry: &str,
    context: Context,
    body: impl FnOnce(&mut ExecuteSession<'static>, usize) -> CallbackResult<()>,
) -> bool {
    let run = || match callback_context::with_session(context, |session, payload| {
        body(session, payload).map_err(|fault| session.refuse(entry, payload, fault))
    }) {
        Some(result) => result.is_ok(),
        None => {
            log_warning(format_args!(
                "a custom library called {entry} with context {context:?}, which belongs to no payload in \
                 execution (the context is stale or invalid)"
            ));
            false
        }
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(false)
}

/// # Safety
/// `name` is null or a C string.
unsafe fn text<'a>(name: *const c_char) -> CallbackResult<&'a [u8]> {
    if name.is_null() {
        return Err("the name is null".into());
    }
    // SAFETY: by the caller's promise.
    Ok(unsafe { CStr::from_ptr(name) }.to_bytes())
}

/// # Safety
/// `name` is null or a C string, `content` and `content_byte_size` null or variables to write; the
/// latter is set if `has_hint`.
unsafe fn next_input(
    context: Context,
    name: *const c_char,
    content: *mut *const c_void,
    content_byte_size: *mut u64,
    has_hint: bool,
) -> bool {
    enter_callback("GetNextInput", context, |session, payload| {
        // SAFETY: by the caller's promise.
        unsafe {
            let name = text(name)?;
            if content.is_null() || content_byte_size.is_null() {
                return Err("the result pointer is null".into());
            }
            let hint = if has_hint { Some(*content_byte_size) } else { None };
            let (block, bytes) = session.next_input(payload, name, hint)?;
            content.write(block.cast());
            content_byte_size.write(bytes);
        }
        Ok(())
    })
}

pub unsafe extern "C" fn get_next_input(
    context: Context,
    name: *const c_char,
    content: *mut *const c_void,
    content_byte_size: *mut u64,
) -> bool {
    // SAFETY: passed on.
    unsafe { next_input(context, name, content, content_byte_size, true) }
}

/// Up to v0.11: the size is a result only, and libraries leave it uninitialised.
pub unsafe extern "C" fn get_next_input_without_hint(
    context: Context,
    name: *const c_char,
    content: *mut *const c_void,
    content_byte_size: *mut u64,
) -> bool {
    // SAFETY: passed on.
    unsafe { next_input(context, name, content, content_byte_size, false) }
}

pub unsafe extern "C" fn get_next_input_v2(
    context: Context,
    name: *const c_char,
    content: *mut *const c_void,
    content_byte_size: *mut u64,
    memory_type: *mut c_int,
) -> bool {
    // SAFETY: passed on.
    unsafe {
        with_memory_type(get_next_input(context, name, content, content_byte_size), memory_type)
    }
}

/// Reports the type of the memory that a callback returned.
///
/// # Safety
/// `memory_type` is null or a variable to write.
unsafe fn with_memory_type(succeeded: bool, memory_type: *mut c_int) -> bool {
    if succeeded && !memory_type.is_null() {
        // SAFETY: by the caller's promise.
        unsafe { memory_type.write(MEMORY_CPU) };
    }
    succeeded
}

/// # Safety
/// `name` is null or a C string, `content` null or a variable to write.
unsafe fn provide_output<'s>(
    context: Context,
    name: *const c_char,
    shape: impl FnOnce() -> CallbackResult<OutputShape<'s>>,
    content_byte_size: u64,
    content: *mut *mut c_void,
) -> bool {
    enter_callback("GetOutput", context, |session, payload| {
        // SAFETY: by the caller's promise.
        unsafe {
            let name = text(name)?;
            if content.is_null() {
                return Err("the result pointer is null".into());
            }
            content.write(std::ptr::null_mut());
            let memory = session.output(payload, name, shape, content_byte_size)?;
            content.write(memory.cast());
        }
        Ok(())
    })
}

pub unsafe extern "C" fn get_output_a(
    context: Context,
    name: *const c_char,
    content_byte_size: u64,
    content: *mut *mut c_void,
) -> bool {
    // SAFETY: passed on.
    unsafe {
        provide_output(context, name, || Ok(OutputShape::Declared), content_byte_size, content)
    }
}

pub unsafe extern "C" fn get_output(
    context: Context,
    name: *const c_char,
    shape_dim_cnt: usize,
    shape_dims: *mut i64,
    content_byte_size: u64,
    content: *mut *mut c_void,
) -> bool {
    let shape = || match shape_dim_cnt {
        0 => Ok(OutputShape::Given(&[])),
        n if n > MAX_RANK => Err(CallbackFault::broken(format!("has a shape of {n} dimensions"))),
        n if shape_dims.is_null() => {
            Err(CallbackFault::broken(format!("has {n} dimensions at a null address")))
        }
        // SAFETY: the library passes `n` dimensions, valid during the call.
        n => Ok(OutputShape::Given(unsafe { std::slice::from_raw_parts(shape_dims, n) })),
    };
    // SAFETY: passed on.
    unsafe { provide_output(context, name, shape, content_byte_size, content) }
}

pub unsafe extern "C" fn get_output_v2(
    context: Context,
    name: *const c_char,
    shape_dim_cnt: usize,
    shape_dims: *mut i64,
    content_byte_size: u64,
    content: *mut *mut c_void,
    memory_type: *mut c_int,
) -> bool {
    // SAFETY: passed on.
    unsafe {
        let succeeded =
            get_output(context, name, shape_dim_cnt, shape_dims, content_byte_size, content);
        with_memory_type(succeeded, memory_type)
    }
}
