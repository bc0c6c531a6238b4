//! `TRITONSERVER_Error`: code and text, owned by whom a function returns it to.

use crate::fault::TritonFault;
use crate::handles::{ObjectKind, TypedObject};
use crate::host::owned_text;
use std::ffi::{CStr, CString};
use trtserver_plugin_api::abi::types::code;

pub struct ErrorObject {
    /// One of Triton's eight codes; others are kept as the backend gave them.
    pub code: u32,
    pub message: CString,
}

impl TypedObject for ErrorObject {
    const KIND: ObjectKind = ObjectKind::Error;
}

impl ErrorObject {
    pub fn from_fault(fault: &TritonFault) -> ErrorObject {
        ErrorObject { code: fault.triton_code(), message: owned_text(&fault.text) }
    }

    /// The error as this library and the host know it.
    pub fn to_fault(&self) -> TritonFault {
        let code = if self.code <= code::CANCELLED { self.code } else { code::UNKNOWN };
        TritonFault::new(code, self.message.to_string_lossy())
    }

    /// The name that Triton prints for a code.
    pub fn code_name(&self) -> &'static CStr {
        match self.code {
            code::INTERNAL => c"Internal",
            code::NOT_FOUND => c"Not found",
            code::INVALID => c"Invalid argument",
            code::UNAVAILABLE => c"Unavailable",
            code::UNSUPPORTED => c"Unsupported",
            code::EXISTS => c"Already exists",
            code::CANCELLED => c"Cancelled",
            code::UNKNOWN => c"Unknown",
            _ => c"<invalid code>",
        }
    }
}
