//! Names of data types, memory types, instance kinds and parameter types.

use super::guard::{Out, TextMaybe, export};
use std::ffi::{c_char, c_int};

/// Name and size of each data type, by its number.
const TYPES: [(&std::ffi::CStr, u32); 15] = [
    (c"<invalid>", 0),
    (c"BOOL", 1),
    (c"UINT8", 1),
    (c"UINT16", 2),
    (c"UINT32", 4),
    (c"UINT64", 8),
    (c"INT8", 1),
    (c"INT16", 2),
    (c"INT32", 4),
    (c"INT64", 8),
    (c"FP16", 2),
    (c"FP32", 4),
    (c"FP64", 8),
    (c"BYTES", 0),
    (c"BF16", 2),
];

fn data_type(number: c_int) -> (&'static std::ffi::CStr, u32) {
    *usize::try_from(number).ok().and_then(|n| TYPES.get(n)).unwrap_or(&TYPES[0])
}

export! {
    /// Version of the interface of programs that embed Triton.
    fn TRITONSERVER_ApiVersion(major: Out<u32>, minor: Out<u32>) {
        major.set(1);
        minor.set(34);
    }

    /// Version of the interface of repository agents, whose other functions are refused.
    fn TRITONREPOAGENT_ApiVersion(major: Out<u32>, minor: Out<u32>) {
        major.set(0);
        minor.set(1);
    }

    /// Version of the interface of response caches, whose other functions are refused.
    fn TRITONCACHE_ApiVersion(major: Out<u32>, minor: Out<u32>) {
        major.set(0);
        minor.set(1);
    }

    /// Name of a data type: a constant.
    fn TRITONSERVER_DataTypeString(datatype: c_int) -> *const c_char, c"<invalid>".as_ptr(); {
        Ok(data_type(datatype).0.as_ptr())
    }

    /// Number of a data type; 0 for an unknown name.
    fn TRITONSERVER_StringToDataType(dtype: TextMaybe) -> c_int, 0; {
        let found = dtype.0.and_then(|name| TYPES.iter().position(|(known, _)| *known == name.c()));
        Ok(found.unwrap_or_default() as c_int)
    }

    /// Bytes of an element; 0 for BYTES and unknown types.
    fn TRITONSERVER_DataTypeByteSize(datatype: c_int) -> u32, 0; {
        Ok(data_type(datatype).1)
    }

    /// Name of a memory type: a constant.
    fn TRITONSERVER_MemoryTypeString(memtype: c_int) -> *const c_char, c"<invalid>".as_ptr(); {
        Ok(match memtype {
            0 => c"CPU",
            1 => c"CPU_PINNED",
            2 => c"GPU",
            _ => c"<invalid>",
        }.as_ptr())
    }

    /// Name of a parameter type: a constant.
    fn TRITONSERVER_ParameterTypeString(paramtype: c_int) -> *const c_char, c"<invalid>".as_ptr(); {
        Ok(match paramtype {
            0 => c"STRING",
            1 => c"INT",
            2 => c"BOOL",
            3 => c"DOUBLE",
            4 => c"BYTES",
            _ => c"<invalid>",
        }.as_ptr())
    }

    /// Name of a kind of instance: a constant.
    fn TRITONSERVER_InstanceGroupKindString(kind: c_int) -> *const c_char, c"<invalid>".as_ptr(); {
        Ok(match kind {
            0 => c"AUTO",
            1 => c"CPU",
            2 => c"GPU",
            3 => c"MODEL",
            _ => c"<invalid>",
        }.as_ptr())
    }
}
