//! `TRITONSERVER_Parameter*`: named values.

use super::guard::{Ended, MEMORY, Text, export};
use crate::fault::TritonFault;
use crate::handles::{create_object, free_object};
use crate::objects::parameter::{ParameterObject, ParameterValue, parameter_type};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

export! {
    /// A parameter with a copy of the value, owned by the caller. Null for a null value and for
    /// values of type BYTES.
    fn TRITONSERVER_ParameterNew(
        name: Text,
        kind: c_int,
        value: *const c_void,
    ) -> *mut ParameterObject, ptr::null_mut(); {
        if kind == parameter_type::BYTES {
            return Ok(ptr::null_mut());
        }
        if value.is_null() {
            return Err(TritonFault::misuse("value is null"));
        }
        // SAFETY: the value has the type that the caller names; a `bool` is read as a byte.
        let value = unsafe {
            match kind {
                parameter_type::STRING => ParameterValue::Text(CStr::from_ptr(value.cast::<c_char>()).into()),
                parameter_type::INT => ParameterValue::Int(value.cast::<i64>().read_unaligned()),
                parameter_type::BOOL => ParameterValue::Bool(value.cast::<u8>().read() != 0),
                parameter_type::DOUBLE => ParameterValue::Double(value.cast::<f64>().read_unaligned()),
                _ => return Err(TritonFault::misuse(format_args!("type {kind} is unknown"))),
            }
        };
        Ok(create_object(ParameterObject { name: name.c().into(), value }).raw())
    }

    /// A parameter that borrows bytes of the caller, owned by the caller.
    fn TRITONSERVER_ParameterBytesNew(
        name: Text,
        byte_ptr: *const c_void,
        size: u64,
    ) -> *mut ParameterObject, ptr::null_mut(); {
        if size > MEMORY || byte_ptr.is_null() && size > 0 {
            return Err(TritonFault::misuse(format_args!(
                "parameter '{}' is said to have {size} bytes at {byte_ptr:?}",
                name.text()
            )));
        }
        let value = ParameterValue::Bytes(byte_ptr.cast(), size);
        Ok(create_object(ParameterObject { name: name.c().into(), value }).raw())
    }

    /// Frees a parameter; null is allowed.
    fn TRITONSERVER_ParameterDelete(parameter: Ended<ParameterObject>) -> (), (); {
        if !parameter.0.is_null() {
            free_object(parameter.0)?;
        }
        Ok(())
    }
}
