//! What every entry of the host API needs: panics and errors become results, pointers are checked.

use crate::text::{PluginError, give_error};
use std::panic::{AssertUnwindSafe, catch_unwind};
use trtserver_base::error::Error;
use trtserver_plugin_api::abi::types::{self, Buf, Memory, code};

/// Runs the body of an entry; errors and panics become an error that the backend frees.
pub fn guard_entry(body: impl FnOnce() -> Result<(), Error>) -> *mut types::Error {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(e)) => give_error(&e),
        Err(_) => PluginError::raw(code::INTERNAL, 0, "the host failed in this call; see its log"),
    }
}

/// Runs the body of an entry that returns a value; a panic returns `default`.
pub fn guard_value<T>(default: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(default)
}

/// Writes a result to memory of the backend.
///
/// # Safety
/// `out` is null or valid for writing one value.
pub unsafe fn put_out<T>(out: *mut T, value: T) -> Result<(), Error> {
    check_result_pointer(out)?;
    // SAFETY: by the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

pub fn check_result_pointer<T>(out: *mut T) -> Result<(), Error> {
    if out.is_null() {
        return Err(Error::invalid("a host function was called with a null result pointer"));
    }
    Ok(())
}

/// What backends receive for an output that was not requested.
pub const NO_BLOCK: Buf = Buf {
    ptr: std::ptr::null_mut(),
    bytes: 0,
    memory: Memory::CPU,
    ready: std::ptr::null_mut(),
    memory_handle: 0,
};
