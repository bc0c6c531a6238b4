//! An ONNX Runtime binding: the inputs and outputs of a run, named once for many runs.

use crate::runtime::{Runtime, ort};
use crate::session::Session;
use crate::value::Value;
use ort_sys::OrtIoBinding;
use std::ffi::CStr;
use std::ptr::{self, NonNull};
use trtserver_framework::fault::Fault;

/// Tied to its session, which must outlive it.
pub struct Binding {
    raw: NonNull<OrtIoBinding>,
    runtime: &'static Runtime,
}

// SAFETY: a binding may be used by any thread, one at a time.
unsafe impl Send for Binding {}

impl Binding {
    /// # Safety
    /// The session outlives the binding.
    pub unsafe fn new(session: &Session) -> Result<Self, Fault> {
        let runtime = session.runtime;
        let mut raw = ptr::null_mut();
        // SAFETY: the session is alive; the out pointer is ours.
        unsafe { ort!(runtime, CreateIoBinding(session.as_ptr(), &raw mut raw))? };
        let raw = NonNull::new(raw)
            .ok_or_else(|| Fault::internal("ONNX Runtime reported success without a binding"))?;
        Ok(Self { raw, runtime })
    }

    /// Adds a reference to the value, whose memory must outlive the binding.
    pub fn input(&mut self, name: &CStr, value: &Value) -> Result<(), Fault> {
        // SAFETY: binding and value are alive; the name is copied.
        unsafe { ort!(self.runtime, BindInput(self.as_ptr(), name.as_ptr(), value.as_ptr())) }
    }

    /// As [`Binding::input`]; runs write into the value.
    pub fn output(&mut self, name: &CStr, value: &Value) -> Result<(), Fault> {
        // SAFETY: as above.
        unsafe { ort!(self.runtime, BindOutput(self.as_ptr(), name.as_ptr(), value.as_ptr())) }
    }

    pub fn as_ptr(&self) -> *mut OrtIoBinding {
        self.raw.as_ptr()
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        // SAFETY: ours, and this is the only release.
        unsafe { ((*self.runtime.api).ReleaseIoBinding)(self.as_ptr()) }
    }
}
