//! A response to a request that a backend has made, in memory of the backend's allocator.

use super::allocator::ResponseAllocator;
use super::nested_request::SendPointer;
use super::parameter::ParameterValue;
use crate::fault::TritonFault;
use crate::handles::{self, LiveObject};
use std::ffi::{CString, c_void};
use std::sync::OnceLock;

pub struct ReceivedResponse {
    pub model: CString,
    pub version: i64,
    pub id: CString,
    pub fault: Option<TritonFault>,
    pub outputs: Vec<ArrivedOutput>,
    pub params: Vec<(CString, ParamValue)>,
}

/// A value, and its form in the memory that a backend reads.
pub struct ParamValue {
    pub value: ParameterValue,
    bits: OnceLock<u64>,
}

impl ParamValue {
    pub fn new(value: ParameterValue) -> Self {
        Self { value, bits: OnceLock::new() }
    }

    /// What the backend reads: a C string, or an `int64_t`, `bool` or `double`.
    pub fn pointer(&self) -> *const c_void {
        let bits = match &self.value {
            ParameterValue::Text(text) => return text.as_ptr().cast(),
            ParameterValue::Bytes(p, _) => return p.cast(),
            ParameterValue::Int(n) => *n as u64,
            ParameterValue::Bool(b) => u64::from(*b),
            ParameterValue::Double(x) => x.to_bits(),
        };
        let bits: *const u64 = self.bits.get_or_init(|| bits);
        bits.cast()
    }
}

pub struct ArrivedOutput {
    pub name: CString,
    pub dtype: u32,
    pub shape: Vec<i64>,
    pub buffer: ArrivedBuffer,
}

/// Memory that an allocator of the backend has given, returned to it when this is dropped.
pub struct ArrivedBuffer {
    pub allocator: LiveObject<ResponseAllocator>,
    pub p: SendPointer,
    pub user: SendPointer,
    pub bytes: usize,
    pub kind: i32,
    pub id: i64,
}

impl Drop for ArrivedBuffer {
    fn drop(&mut self) {
        // The allocator may be gone: it must outlive its responses.
        let Ok(allocator) = handles::get_object(self.allocator.raw()) else { return };
        // SAFETY: what the allocator returned, given back once.
        let error = unsafe {
            (allocator.free)(allocator.raw(), self.p.0, self.user.0, self.bytes, self.kind, self.id)
        };
        if let Ok(error) = handles::free_object(error) {
            let text = error.message.to_string_lossy().into_owned();
            if let Some(scope) = crate::scope::current_scope() {
                let backend = scope.backend();
                scope.error(&format!("backend '{backend}': releasing an output failed: {text}"));
            }
        }
    }
}
