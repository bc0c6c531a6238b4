//! `TRITONSERVER_Parameter`: a named value made by the backend.

use crate::handles::{ObjectKind, TypedObject};
use std::ffi::CString;
use trtserver_plugin_api::abi::types::{Param, Str, param};

/// Triton's numbers of parameter types.
pub mod parameter_type {
    pub const STRING: i32 = 0;
    pub const INT: i32 = 1;
    pub const BOOL: i32 = 2;
    pub const DOUBLE: i32 = 3;
    pub const BYTES: i32 = 4;
}

pub struct ParameterObject {
    pub name: CString,
    pub value: ParameterValue,
}

pub enum ParameterValue {
    Text(CString),
    Int(i64),
    Bool(bool),
    Double(f64),
    /// Memory of the backend, valid as long as the parameter.
    Bytes(*const u8, u64),
}

// SAFETY: the bytes are only read, and the backend keeps them.
unsafe impl Send for ParameterValue {}
// SAFETY: threads only read the bytes, which the backend keeps as long as the parameter.
unsafe impl Sync for ParameterValue {}

impl TypedObject for ParameterObject {
    const KIND: ObjectKind = ObjectKind::Parameter;
}

impl ParameterValue {
    /// The value as a label of a metric.
    pub fn label(&self) -> Option<String> {
        match self {
            ParameterValue::Text(text) => Some(text.to_string_lossy().into_owned()),
            ParameterValue::Int(n) => Some(n.to_string()),
            ParameterValue::Bool(b) => Some(b.to_string()),
            ParameterValue::Double(x) => Some(x.to_string()),
            ParameterValue::Bytes(..) => None,
        }
    }

    /// The value as a parameter of the host, which borrows it.
    pub fn param(&self, key: Str) -> Param {
        let none = Str { p: std::ptr::null(), n: 0 };
        let (kind, text, bits) = match self {
            ParameterValue::Text(text) => (param::STRING, crate::host::as_str(text), 0),
            ParameterValue::Int(n) => (param::INT, none, *n as u64),
            ParameterValue::Bool(b) => (param::BOOL, none, u64::from(*b)),
            ParameterValue::Double(x) => (param::DOUBLE, none, x.to_bits()),
            ParameterValue::Bytes(p, n) => (param::BYTES, Str { p: *p, n: *n }, 0),
        };
        Param { key, kind, pad: 0, text, bits }
    }
}
