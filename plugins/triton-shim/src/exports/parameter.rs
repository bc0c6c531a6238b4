//! `TRITONSERVER_Parameter*`: named values.

use super::guard::{Ended, MEMORY, Text, export};
use crate::fault::Fault;
use crate::handles::{create, free};
use crate::objects::parameter::{Parameter, Value, parameter_type};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

export! {
    /// A parameter with a copy of the value, owned by the caller. Null for a null value and for values of type BYTES.
    fn TRITONSERVER_ParameterNew(
        name: Text,
        kind: c_int,
        value: *const c_void,
    ) -> *mut Parameter, ptr::null_mut(); {
        if kind == parameter_type::BYTES {
            return Ok(ptr::null_mut());
        }
        if value.is_null() {
            return Err(Fault::misuse("value is null"));
        }
        // SAFETY: the value has the type that the caller names; a `bool` is read as a byte.
        let value = unsafe {
            match kind {
                parameter_type::STRING => Value::Text(CStr::from_ptr(value.cast::<c_char>()).into()),
                parameter_type::INT => Value::Int(value.cast::<i64>().read_unaligned()),
                parameter_type::BOOL => Value::Bool(value.cast::<u8>().read() != 0),
                parameter_type::DOUBLE => Value::Double(value.cast::<f64>().read_unaligned()),
                _ => return Err(Fault::misuse(format_args!("type {kind} is unknown"))),
            }
        };
        Ok(create(Parameter { name: name.c().into(), value }).raw())
    }

    /// A parameter that borrows bytes of the caller, owned by the caller.
    fn TRITONSERVER_ParameterBytesNew(
        name: Text,
        byte_ptr: *const c_void,
        size: u64,
    ) -> *mut Parameter, ptr::null_mut(); {
        if size > MEMORY || byte_ptr.is_null() && size > 0 {
            return Err(Fault::misuse(format_args!(
                "parameter '{}' is said to have {size} bytes at {byte_ptr:?}",
                name.text()
            )));
        }
        let value = Value::Bytes(byte_ptr.cast(), size);
        Ok(create(Parameter { name: name.c().into(), value }).raw())
    }

    /// Frees a parameter; null is allowed.
    fn TRITONSERVER_ParameterDelete(parameter: Ended<Parameter>) -> (), (); {
        if !parameter.0.is_null() {
            free(parameter.0)?;
        }
        Ok(())
    }
}
