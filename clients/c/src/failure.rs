//! Errors of the C interface, and the boundary that every function passes: no panic leaves the
//! library.

use crate::fork;
use crate::handle::{HandleObject, ObjectHandle};
use std::ffi::{CString, c_char};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use trtserver_client::{Error, Kind};

pub type Outcome<T> = Result<T, ClientFailure>;

/// Why a function failed.
pub enum ClientFailure {
    Client(Error),
    Argument(String),
    File(String),
    Internal(String),
}

impl ClientFailure {
    pub fn argument(message: impl Into<String>) -> Self {
        Self::Argument(message.into())
    }

    fn message(&self) -> &str {
        match self {
            Self::Client(error) => error.message(),
            Self::Argument(message) | Self::File(message) | Self::Internal(message) => message,
        }
    }

    /// `TRTC_KIND_…`.
    fn kind(&self) -> i32 {
        match self {
            Self::Client(error) if error.is_from_server() => 0,
            Self::Client(error) => match error.kind() {
                Kind::Connect | Kind::Connection => 1,
                Kind::DeadlineExceeded => 2,
                Kind::Cancelled => 3,
                Kind::Protocol => 4,
                Kind::Internal => 7,
                _ => 5,
            },
            Self::Argument(_) => 5,
            Self::File(_) => 6,
            Self::Internal(_) => 7,
        }
    }

    /// `TRTC_CODE_…`.
    fn code(&self) -> i32 {
        match self {
            Self::Client(error) => error.v1_code() as i32,
            Self::Argument(_) | Self::File(_) => 5,
            Self::Internal(_) => 3,
        }
    }
}

impl From<Error> for ClientFailure {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl fmt::Display for ClientFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

/// `trtc_error`: a failure with its texts as C strings.
pub struct ErrorObject {
    code: i32,
    kind: i32,
    status: i32,
    request_id: u64,
    message: CString,
    server_id: CString,
    asked: CString,
    id: CString,
}

impl HandleObject for ErrorObject {
    const NAME: &'static str = "error";
}

impl ErrorObject {
    pub fn handle(failure: &ClientFailure) -> ObjectHandle<ErrorObject> {
        let (mut status, mut request_id) = (0, 0);
        let (mut server_id, mut asked, mut id) = ("", "", "");
        if let ClientFailure::Client(error) = failure {
            status = if error.is_from_server() { error.code() } else { 0 };
            request_id = error.request_id();
            (server_id, asked, id) = (error.server_id(), error.asked(), error.id());
        }
        ObjectHandle::new(Arc::new(ErrorObject {
            code: failure.code(),
            kind: failure.kind(),
            status,
            request_id,
            message: c_string(failure.message()),
            server_id: c_string(server_id),
            asked: c_string(asked),
            id: c_string(id),
        }))
    }
}

/// The text up to its first NUL.
pub fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// Runs a function of the interface: NULL is success.
pub fn guard_call(body: impl FnOnce() -> Outcome<()>) -> ObjectHandle<ErrorObject> {
    match catch_panic(|| fork::refuse_after_fork().and_then(|()| body())) {
        Ok(()) => ObjectHandle::NULL,
        Err(failure) => ignore_panic(ObjectHandle::INVALID, || ErrorObject::handle(&failure)),
    }
}

/// Runs a part of the interface; a panic becomes an error.
fn catch_panic<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(ClientFailure::Internal(format!("defect of the client library: {text}")))
    })
}

/// Runs a function that cannot report errors; `otherwise` is returned after a panic.
pub fn ignore_panic<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// `trtc_error_info`.
#[repr(C)]
pub struct ErrorInfo {
    code: i32,
    kind: i32,
    status: i32,
    request_id: u64,
    message: *const c_char,
    server_id: *const c_char,
    asked: *const c_char,
    id: *const c_char,
}

/// # Safety
/// `info` is NULL or points to writable memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_error_get(error: ObjectHandle<ErrorObject>, info: *mut ErrorInfo) {
    if info.is_null() {
        return;
    }
    let found = ignore_panic(None, || error.find());
    let info_of = |e: Option<&ErrorObject>| match e {
        Some(e) => ErrorInfo {
            code: e.code,
            kind: e.kind,
            status: e.status,
            request_id: e.request_id,
            message: e.message.as_ptr(),
            server_id: e.server_id.as_ptr(),
            asked: e.asked.as_ptr(),
            id: e.id.as_ptr(),
        },
        None => ErrorInfo {
            code: 0,
            kind: 0,
            status: 0,
            request_id: 0,
            message: ptr::null(),
            server_id: ptr::null(),
            asked: ptr::null(),
            id: ptr::null(),
        },
    };
    // SAFETY: the contract of this function. The strings live as long as the object, which the
    // table keeps.
    unsafe { info.write(info_of(found.as_deref())) };
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_error_code(error: ObjectHandle<ErrorObject>) -> i32 {
    if error.is_null() {
        return 1;
    }
    ignore_panic(0, || error.find().map_or(0, |e| e.code))
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_error_message(error: ObjectHandle<ErrorObject>) -> *const c_char {
    ignore_panic(c"".as_ptr(), || error.find().map_or(c"".as_ptr(), |e| e.message.as_ptr()))
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_code_name(code: i32) -> *const c_char {
    let name = match code {
        0 => c"INVALID",
        1 => c"SUCCESS",
        3 => c"INTERNAL",
        4 => c"NOT_FOUND",
        5 => c"INVALID_ARG",
        6 => c"UNAVAILABLE",
        7 => c"UNSUPPORTED",
        8 => c"ALREADY_EXISTS",
        _ => c"UNKNOWN",
    };
    name.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_error_free(error: ObjectHandle<ErrorObject>) {
    ignore_panic((), || drop(error.release()));
}
