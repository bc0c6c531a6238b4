//! Conversion of strings and errors between host and backend.

use std::borrow::Cow;
use std::ffi::CString;
use trtserver_base::error::{Code, Error};
use trtserver_plugin_api::abi::types::{self, Bytes, Str, code, error_flags};

/// A view of NUL-terminated text that the host keeps alive.
pub fn str_view(text: &CString) -> Str {
    Str { p: text.as_ptr().cast(), n: text.as_bytes().len() as u64 }
}

pub const EMPTY: Str = Str { p: c"".as_ptr().cast(), n: 0 };

/// A view of a literal.
pub const fn literal_view(text: &'static std::ffi::CStr) -> Str {
    Str { p: text.as_ptr().cast(), n: text.to_bytes().len() as u64 }
}

pub fn bytes_view(data: &[u8]) -> Bytes {
    Bytes { p: data.as_ptr(), n: data.len() as u64 }
}

/// A NUL-terminated string; inner NULs, which only hostile input has, become spaces.
pub fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| CString::new(text.replace('\0', " ")).unwrap_or_default())
}

/// Copies a string from a backend; invalid UTF-8 is replaced.
///
/// # Safety
/// `s.p` is null or valid for `s.n` bytes for the duration of the call.
pub unsafe fn read_text(s: Str) -> String {
    // SAFETY: by the caller's promise.
    unsafe { read_borrowed(s) }.into_owned()
}

/// As [`read_text`], without a copy if the string is valid UTF-8.
///
/// # Safety
/// `s.p` is null or valid for `s.n` bytes for `'a`.
pub unsafe fn read_borrowed<'a>(s: Str) -> Cow<'a, str> {
    if s.p.is_null() || s.n == 0 || isize::try_from(s.n).is_err() {
        return Cow::Borrowed("");
    }
    // SAFETY: by the caller's promise; the size was checked.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(s.p, s.n as usize) })
}

/// The target of a `trts_error`.
pub struct PluginError {
    pub code: u32,
    pub flags: u32,
    pub text: CString,
}

impl PluginError {
    /// A new error, owned by the receiver of the pointer.
    pub fn raw(code: u32, flags: u32, text: &str) -> *mut types::Error {
        Box::into_raw(Box::new(Self { code, flags, text: c_text(text) })).cast()
    }

    /// Converts to a host error. A lost device is also logged, because the response to the client
    /// does not reach the operator.
    pub fn to_error(&self) -> Error {
        if self.flags & error_flags::DEVICE_LOST != 0 {
            tracing::error!("a backend reports that its device is lost: {:?}", self.text);
        }
        Error {
            model_broken: self.flags & error_flags::MODEL_BROKEN != 0,
            ..Error::new(to_error_code(self.code), self.text.to_string_lossy())
        }
    }
}

/// The host's code for a code of the interface.
pub fn to_error_code(number: u32) -> Code {
    match number {
        code::UNKNOWN => Code::Unknown,
        code::NOT_FOUND => Code::NotFound,
        code::INVALID => Code::InvalidArg,
        code::UNAVAILABLE | code::DEADLINE | code::DEVICE_LOST => Code::Unavailable,
        code::EXHAUSTED => Code::ResourceExhausted,
        code::UNSUPPORTED => Code::Unsupported,
        code::EXISTS => Code::AlreadyExists,
        code::CANCELLED => Code::Cancelled,
        _ => Code::Internal,
    }
}

/// The interface's code for a code of the host.
pub fn to_code_number(code: Code) -> u32 {
    match code {
        Code::Unknown => code::UNKNOWN,
        Code::Internal => code::INTERNAL,
        Code::NotFound => code::NOT_FOUND,
        Code::InvalidArg => code::INVALID,
        Code::Unavailable | Code::RequestTimeout => code::UNAVAILABLE,
        Code::Unsupported | Code::Unauthenticated | Code::PermissionDenied => code::UNSUPPORTED,
        Code::AlreadyExists => code::EXISTS,
        Code::Cancelled => code::CANCELLED,
        Code::ResourceExhausted => code::EXHAUSTED,
    }
}

/// An error for the backend to free.
pub fn give_error(error: &Error) -> *mut types::Error {
    PluginError::raw(to_code_number(error.code), 0, &error.message)
}

/// Takes and frees an error that a backend returned; null is success.
///
/// # Safety
/// `error` is null or came from [`PluginError::raw`], and is not used after this.
pub unsafe fn take_error(error: *mut types::Error) -> Result<(), Box<PluginError>> {
    if error.is_null() {
        Ok(())
    } else {
        // SAFETY: by the caller's promise.
        Err(unsafe { Box::from_raw(error.cast::<PluginError>()) })
    }
}
