//! `TRITONSERVER_Error*`: making, reading and deleting errors.

use super::guard::{Ended, Text, TextMaybe, export};
use crate::handles::{LiveObject, create_object, free_object};
use crate::host::owned_text;
use crate::objects::error::ErrorObject;
use std::ffi::{c_char, c_int};
use std::ptr;

export! {
    /// A new error, owned by the caller. The text is copied. One without a text is an error all the
    /// same: null would be success.
    fn TRITONSERVER_ErrorNew(code: c_int, msg: TextMaybe) -> *mut ErrorObject, ptr::null_mut(); {
        let code = u32::try_from(code).unwrap_or_default();
        let text = msg.0.as_ref().map_or("the backend gave no message (msg is null)".into(), Text::text);
        Ok(create_object(ErrorObject { code, message: owned_text(&text) }).raw())
    }

    /// Frees an error; null is allowed.
    fn TRITONSERVER_ErrorDelete(error: Ended<ErrorObject>) -> (), (); {
        if !error.0.is_null() {
            free_object(error.0)?;
        }
        Ok(())
    }

    /// The code.
    fn TRITONSERVER_ErrorCode(error: LiveObject<ErrorObject>) -> c_int, 0; {
        Ok(error.code as c_int)
    }

    /// The code's name: a constant.
    fn TRITONSERVER_ErrorCodeString(error: LiveObject<ErrorObject>) -> *const c_char, c"<invalid error>".as_ptr(); {
        Ok(error.code_name().as_ptr())
    }

    /// The text, owned by the error.
    fn TRITONSERVER_ErrorMessage(error: LiveObject<ErrorObject>) -> *const c_char, c"<invalid error>".as_ptr(); {
        Ok(error.message.as_ptr())
    }
}
