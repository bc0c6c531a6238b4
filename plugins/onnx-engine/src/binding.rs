//! An ONNX Runtime binding: the inputs and outputs of a run, named once for many runs.

use crate::runtime::{OnnxRuntime, ort};
use crate::session::OnnxSession;
use crate::value::OnnxValue;
use ort_sys::{OrtIoBinding, OrtMemoryInfo, OrtValue};
use std::ffi::CStr;
use std::ptr::{self, NonNull};
use trtserver_framework::fault::PluginFault;

/// Tied to its session, which must outlive it.
pub struct IoBinding {
    raw: NonNull<OrtIoBinding>,
    runtime: &'static OnnxRuntime,
}

// SAFETY: a binding may be used by any thread, one at a time.
unsafe impl Send for IoBinding {}

impl IoBinding {
    /// # Safety
    /// The session outlives the binding.
    pub unsafe fn new(session: &OnnxSession) -> Result<Self, PluginFault> {
        let runtime = session.runtime;
        let mut raw = ptr::null_mut();
        // SAFETY: the session is alive; the out pointer is ours.
        unsafe { ort!(runtime, CreateIoBinding(session.as_ptr(), &raw mut raw))? };
        let raw = NonNull::new(raw).ok_or_else(|| {
            PluginFault::internal("ONNX Runtime reported success without a binding")
        })?;
        Ok(Self { raw, runtime })
    }

    /// Adds a reference to the value, whose memory must outlive the binding.
    pub fn input(&mut self, name: &CStr, value: &OnnxValue) -> Result<(), PluginFault> {
        // SAFETY: binding and value are alive; the name is copied.
        unsafe { ort!(self.runtime, BindInput(self.as_ptr(), name.as_ptr(), value.as_ptr())) }
    }

    /// As [`IoBinding::input`]; runs write into the value.
    pub fn output(&mut self, name: &CStr, value: &OnnxValue) -> Result<(), PluginFault> {
        // SAFETY: binding and value are alive by their references; the library copies the name.
        unsafe { ort!(self.runtime, BindOutput(self.as_ptr(), name.as_ptr(), value.as_ptr())) }
    }

    /// Lets runs allocate an output in this memory.
    pub fn output_in(
        &mut self,
        name: &CStr,
        memory: *const OrtMemoryInfo,
    ) -> Result<(), PluginFault> {
        // SAFETY: the binding is alive, and so is the memory's description; both are copied.
        unsafe { ort!(self.runtime, BindOutputToDevice(self.as_ptr(), name.as_ptr(), memory)) }
    }

    /// The outputs of the last run, in the order in which they were bound.
    pub fn outputs(&self) -> Result<Vec<OnnxValue>, PluginFault> {
        let (runtime, allocator) = (self.runtime, self.runtime.allocator);
        let (mut list, mut n) = (ptr::null_mut::<*mut OrtValue>(), 0);
        // SAFETY: the binding is alive. On success the list holds `n` values, which are ours; the
        // list is freed once.
        unsafe {
            ort!(
                runtime,
                GetBoundOutputValues(self.as_ptr(), allocator, &raw mut list, &raw mut n)
            )?;
            if list.is_null() {
                return Ok(Vec::new());
            }
            let all = (0..n).map(|at| OnnxValue::from_raw(runtime, *list.add(at)));
            // All values become owned before the first error is returned.
            let all: Vec<_> = all.collect();
            ort!(runtime, AllocatorFree(allocator, list.cast()))?;
            all.into_iter().collect()
        }
    }

    /// Drops the references to all inputs.
    pub fn clear_inputs(&mut self) {
        // SAFETY: the binding is alive.
        unsafe { ((*self.runtime.api).ClearBoundInputs)(self.as_ptr()) }
    }

    /// Drops the references to all outputs.
    pub fn clear_outputs(&mut self) {
        // SAFETY: the binding is alive as long as `self`.
        unsafe { ((*self.runtime.api).ClearBoundOutputs)(self.as_ptr()) }
    }

    pub fn as_ptr(&self) -> *mut OrtIoBinding {
        self.raw.as_ptr()
    }
}

impl Drop for IoBinding {
    fn drop(&mut self) {
        // SAFETY: ours, and this is the only release.
        unsafe { ((*self.runtime.api).ReleaseIoBinding)(self.as_ptr()) }
    }
}
