//! What all functions of the table share: handles as boxes, texts, statuses.

use ort_sys::stub::Error;
use ort_sys::{OrtErrorCode, OrtStatusPtr};
use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;

/// A list of C strings.
pub type Texts = *const *const c_char;

pub const OK: OrtStatusPtr = OrtStatusPtr(null_mut());

pub fn status(result: Result<(), String>) -> OrtStatusPtr {
    result.map_or_else(|text| Error::new_sys(OrtErrorCode::ORT_RUNTIME_EXCEPTION, text), |()| OK)
}

/// A reference to what a handle points at.
macro_rules! at {
    ($handle:expr, $type:ty) => {
        // SAFETY: the caller passes handles of this library, which are alive.
        unsafe { &*$handle.cast::<$type>() }
    };
}

/// The same, to change it.
macro_rules! at_mut {
    ($handle:expr, $type:ty) => {
        // SAFETY: the caller passes live handles of this library, and uses a handle that functions
        // change on one thread at a time.
        unsafe { &mut *$handle.cast::<$type>() }
    };
}

/// Writes a result of a function.
macro_rules! give {
    ($out:expr, $value:expr) => {{
        let (out, value) = ($out, $value);
        // SAFETY: the caller passes a pointer for the result.
        unsafe { out.write(value) }
    }};
}

pub fn handle<T, H>(value: T) -> *mut H {
    Box::into_raw(Box::new(value)).cast()
}

/// # Safety
/// A handle of `handle`, not used any more, or null.
pub unsafe fn release<T, H>(handle: *mut H) {
    if !handle.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(handle.cast::<T>()) });
    }
}

pub fn text(p: *const c_char) -> String {
    // SAFETY: the caller passes C strings.
    unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
}

pub fn new_text(text: &str) -> *mut c_char {
    CString::new(text).unwrap_or_default().into_raw()
}
