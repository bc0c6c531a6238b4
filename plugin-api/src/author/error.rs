//! Errors for Rust authors, and their conversion to and from errors of the host.

use super::host::{Host, as_text, with_str};
use crate::abi;
use crate::abi::types::{code, error_flags};
use std::fmt;

/// Class of an error. Clients see it as an HTTP or gRPC status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Code {
    /// None of the others.
    Unknown = code::UNKNOWN,
    /// A defect of the server or the backend.
    Internal = code::INTERNAL,
    /// There is no such thing.
    NotFound = code::NOT_FOUND,
    /// The request or the configuration is wrong.
    Invalid = code::INVALID,
    /// Not now: the model or the server is starting or ending.
    Unavailable = code::UNAVAILABLE,
    /// This backend or host cannot do it.
    Unsupported = code::UNSUPPORTED,
    /// There is one already.
    Exists = code::EXISTS,
    /// The client or the host no longer wants it.
    Cancelled = code::CANCELLED,
    /// Its time has passed.
    Deadline = code::DEADLINE,
    /// A limit is reached: memory, queue or stream.
    Exhausted = code::EXHAUSTED,
    /// The GPU can execute nothing any more.
    DeviceLost = code::DEVICE_LOST,
    /// The caller may not do it.
    Permission = code::PERMISSION,
    /// It was interrupted and may be tried again.
    Aborted = code::ABORTED,
}

impl Code {
    /// The code of a number of [`crate::abi::types::code`]; unknown numbers are `Unknown`.
    pub fn from_abi(number: u32) -> Code {
        match number {
            code::INTERNAL => Code::Internal,
            code::NOT_FOUND => Code::NotFound,
            code::INVALID => Code::Invalid,
            code::UNAVAILABLE => Code::Unavailable,
            code::UNSUPPORTED => Code::Unsupported,
            code::EXISTS => Code::Exists,
            code::CANCELLED => Code::Cancelled,
            code::DEADLINE => Code::Deadline,
            code::EXHAUSTED => Code::Exhausted,
            code::DEVICE_LOST => Code::DeviceLost,
            code::PERMISSION => Code::Permission,
            code::ABORTED => Code::Aborted,
            _ => Code::Unknown,
        }
    }

    /// Its number in [`crate::abi::types::code`].
    pub fn to_abi(self) -> u32 {
        self as u32
    }
}

/// A failure: a code, a text for the client, and flags for the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    code: Code,
    flags: u32,
    text: String,
}

macro_rules! by_code {
    ($($name:ident $code:ident,)*) => { $(
        /// An error of this code.
        pub fn $name(text: impl fmt::Display) -> Error {
            Error::new(Code::$code, text)
        }
    )* };
}

impl Error {
    /// An error without flags. Clients see the text.
    pub fn new(code: Code, text: impl fmt::Display) -> Error {
        Error { code, flags: 0, text: text.to_string() }
    }

    by_code! {
        internal Internal,
        not_found NotFound,
        invalid Invalid,
        unavailable Unavailable,
        unsupported Unsupported,
        cancelled Cancelled,
        deadline Deadline,
        exhausted Exhausted,
        device_lost DeviceLost,
    }

    /// The same request may succeed if sent again.
    pub fn retryable(self) -> Error {
        self.with_flags(error_flags::RETRYABLE)
    }

    /// Caused by the request, not by the model.
    pub fn by_client(self) -> Error {
        self.with_flags(error_flags::CLIENT)
    }

    /// The model cannot execute any more: the host takes the instance out of service.
    pub fn model_broken(self) -> Error {
        self.with_flags(error_flags::MODEL_BROKEN)
    }

    /// Adds bits of [`crate::abi::types::error_flags`].
    pub fn with_flags(mut self, flags: u32) -> Error {
        self.flags |= flags;
        self
    }

    /// Puts `what: ` before the text.
    pub fn context(mut self, what: impl fmt::Display) -> Error {
        self.text = format!("{what}: {}", self.text);
        self
    }

    /// Its class.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Bits of [`crate::abi::types::error_flags`].
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// What clients see.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Creates an error of the host; its receiver frees it.
    pub(crate) fn raise(&self, host: Host) -> *mut abi::types::Error {
        with_str(&self.text, |text| {
            // SAFETY: the text is valid during the call, which copies it.
            unsafe { (host.error_new)(self.code.to_abi(), self.flags, text) }
        })
    }

    /// Converts and frees an error of the host; null is success.
    ///
    /// # Safety
    /// `raw` is null or an error owned by the caller.
    pub(crate) unsafe fn take(host: Host, raw: *mut abi::types::Error) -> Result<(), Error> {
        if raw.is_null() {
            return Ok(());
        }
        // SAFETY: the error is valid until `error_free`.
        unsafe {
            let error = Error::from_host(host, raw);
            (host.error_free)(raw);
            Err(error)
        }
    }

    /// Copies an error of the host.
    ///
    /// # Safety
    /// `raw` is an error that is valid during the call.
    pub(crate) unsafe fn from_host(host: Host, raw: *const abi::types::Error) -> Error {
        // SAFETY: by the caller's promise.
        let (code, text) = unsafe { ((host.error_code)(raw), as_text((host.error_text)(raw))) };
        Error { code: Code::from_abi(code), flags: 0, text: text.to_owned() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => Code::NotFound,
            std::io::ErrorKind::PermissionDenied => Code::Permission,
            std::io::ErrorKind::OutOfMemory => Code::Exhausted,
            _ => Code::Internal,
        };
        Error::new(code, error)
    }
}

impl From<String> for Error {
    fn from(text: String) -> Error {
        Error::internal(text)
    }
}

impl From<&str> for Error {
    fn from(text: &str) -> Error {
        Error::internal(text)
    }
}
