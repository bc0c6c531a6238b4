//! What a session on a GPU has beside the session: which tensors are in device memory, the arena,
//! the options of its runs.

use crate::binding::IoBinding;
use crate::check::TensorSlot;
use crate::model::OnnxModel;
use crate::runtime::{GPU_API, OnnxRuntime, ort};
use crate::session::{OnnxSession, SessionTensor};
use ort_sys::{
    OrtAllocator, OrtAllocatorType, OrtDeviceMemoryType, OrtKeyValuePairs, OrtMemType,
    OrtMemoryInfo, OrtMemoryInfoDeviceType, OrtRunOptions, OrtSession, OrtStatusPtr,
};
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::Arc;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::search::read_c_text;

/// Fields are dropped in this order.
pub struct GpuSession {
    pub binding: IoBinding,
    handles: Handles,
    /// For each input and output of the plan, whether the session takes and returns it in device
    /// memory. The others are read and written by nodes on the CPU.
    pub inputs_on_device: Vec<bool>,
    pub outputs_on_device: Vec<bool>,
    /// Shared by the sizes that an instance is prepared for, where their graphs belong to one
    /// session.
    pub model: Arc<OnnxModel>,
}

// SAFETY: the library allows any thread to use a session and what belongs to it, one at a time.
unsafe impl Send for GpuSession {}

struct Handles {
    runtime: &'static OnnxRuntime,
    memory: *mut OrtMemoryInfo,
    arena: *mut OrtAllocator,
    run_options: *mut OrtRunOptions,
}

impl Drop for Handles {
    fn drop(&mut self) {
        // SAFETY: ours, or null, which the library accepts; this is the only release.
        unsafe {
            ((*self.runtime.api).ReleaseRunOptions)(self.run_options);
            if !self.arena.is_null() {
                ((*self.runtime.api).ReleaseAllocator)(self.arena);
            }
            ((*self.runtime.api).ReleaseMemoryInfo)(self.memory);
        }
    }
}

type Places =
    unsafe extern "system" fn(*const OrtSession, *mut *const OrtMemoryInfo, usize) -> OrtStatusPtr;

impl GpuSession {
    /// `model` has a session on that GPU. `graph_id` tells the CUDA graphs of the session apart.
    pub fn new(
        model: Arc<OnnxModel>,
        device_id: i32,
        graph_id: Option<usize>,
    ) -> Result<Self, PluginFault> {
        let runtime = model.session.runtime;
        let mut handles = Handles {
            runtime,
            memory: ptr::null_mut(),
            arena: ptr::null_mut(),
            run_options: ptr::null_mut(),
        };
        let signature = &model.session.signature;
        // SAFETY: the session is alive, the library has these entries (`GPU_API`), out pointers are
        // ours, the binding is dropped before the session.
        let (binding, inputs, outputs) = unsafe {
            ort!(
                runtime,
                CreateMemoryInfo(
                    c"Cuda".as_ptr(),
                    OrtAllocatorType::OrtArenaAllocator,
                    device_id,
                    OrtMemType::OrtMemTypeDefault,
                    &raw mut handles.memory
                )
            )?;
            let session = model.session.as_ptr();
            ort!(runtime, CreateAllocator(session, handles.memory, &raw mut handles.arena))?;
            // Without `disable_synchronize_execution_providers`: together with the host's stream
            // the library would free pinned memory in a callback of the driver, which ends the
            // process.
            ort!(runtime, CreateRunOptions(&raw mut handles.run_options))?;
            if let Some(id) = graph_id {
                let id = CString::new(id.to_string()).unwrap_or_default();
                let (options, key) = (handles.run_options, c"gpu_graph_id".as_ptr());
                ort!(runtime, AddRunConfigEntry(options, key, id.as_ptr()))?;
            }
            (
                IoBinding::new(&model.session)?,
                output_places(
                    &model.session,
                    (*runtime.api).SessionGetMemoryInfoForInputs,
                    signature.inputs.len(),
                )?,
                output_places(
                    &model.session,
                    (*runtime.api).SessionGetMemoryInfoForOutputs,
                    signature.outputs.len(),
                )?,
            )
        };
        // In the order of the plan. An input with a default in the file is not in the list of the
        // session, and is copied from the CPU by the library.
        let of_plan =
            |slots: &[TensorSlot], declared: &[SessionTensor], on_device: &[bool]| -> Vec<bool> {
                let place = |slot: &TensorSlot| {
                    let at = declared.iter().position(|tensor| tensor.c_name == slot.handle.c_name);
                    at.is_some_and(|at| on_device[at])
                };
                slots.iter().map(place).collect()
            };
        let inputs_on_device = of_plan(&model.plan.inputs, &signature.inputs, &inputs);
        let outputs_on_device = of_plan(&model.plan.outputs, &signature.outputs, &outputs);
        Ok(Self { binding, handles, inputs_on_device, outputs_on_device, model })
    }

    /// Describes the device's memory.
    pub fn memory(&self) -> *const OrtMemoryInfo {
        self.handles.memory
    }

    /// Runs the model on the binding. The library waits for the stream before it returns.
    ///
    /// # Safety
    /// The values of the binding are valid.
    pub unsafe fn run(&self) -> Result<(), PluginFault> {
        let (session, binding) = (self.model.session.as_ptr(), self.binding.as_ptr());
        let _scope = self.model.session.enter_log();
        // SAFETY: the binding is of this session; the caller's promise.
        unsafe {
            ort!(self.handles.runtime, RunWithBinding(session, self.handles.run_options, binding))
        }
    }

    /// Bytes of the device that the arena has taken: weights, intermediate tensors, outputs, and
    /// what is free in it.
    pub fn arena_bytes(&self) -> Option<u64> {
        // SAFETY: the allocator is alive.
        unsafe { allocated(self.handles.runtime, self.handles.arena) }
    }
}

/// Bytes that an arena has taken from its device.
///
/// # Safety
/// The allocator is alive.
unsafe fn allocated(runtime: &OnnxRuntime, allocator: *const OrtAllocator) -> Option<u64> {
    let mut stats: *mut OrtKeyValuePairs = ptr::null_mut();
    // SAFETY: by the caller's promise; the statistics are ours until the release, which frees the
    // text too.
    unsafe {
        ort!(runtime, AllocatorGetStats(allocator, &raw mut stats)).ok()?;
        let total: *const c_char = ((*runtime.api).GetKeyValue)(stats, c"TotalAllocated".as_ptr());
        let total = read_c_text(total).parse().ok();
        ((*runtime.api).ReleaseKeyValuePairs)(stats);
        total
    }
}

/// For each tensor in the order of the session, whether it is in device memory.
///
/// # Safety
/// `entry` is the entry of the table for `n` tensors.
unsafe fn output_places(
    session: &OnnxSession,
    entry: Places,
    n: usize,
) -> Result<Vec<bool>, PluginFault> {
    let (runtime, mut all) = (session.runtime, vec![ptr::null(); n]);
    // SAFETY: the session is alive, the vector has `n` entries; what they point at lives as long as
    // the session.
    unsafe {
        runtime.outcome(entry(session.as_ptr(), all.as_mut_ptr(), n))?;
        Ok(all.into_iter().map(|memory| is_on_device(runtime, memory)).collect())
    }
}

/// # Safety
/// Null or alive.
unsafe fn is_on_device(runtime: &OnnxRuntime, memory: *const OrtMemoryInfo) -> bool {
    if memory.is_null() {
        return false;
    }
    let mut kind = OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU;
    // SAFETY: alive by the caller's promise. Pinned memory has the device's type, and is the CPU's
    // all the same.
    unsafe {
        ((*runtime.api).MemoryInfoGetDeviceType)(memory, &raw mut kind);
        let usual = ((*runtime.api).MemoryInfoGetDeviceMemType)(memory);
        kind == OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_GPU
            && usual == OrtDeviceMemoryType::OrtDeviceMemoryType_DEFAULT
    }
}

/// # Errors
/// The library is too old for sessions on GPUs.
pub fn expect_gpu_api(runtime: &OnnxRuntime) -> Result<(), PluginFault> {
    if runtime.offers_gpu_api {
        return Ok(());
    }
    Err(PluginFault::unsupported(format!(
        "instances of KIND_GPU need ONNX Runtime 1.{GPU_API} or newer, not {} from {}: older ones do not tell which \
         tensors are in GPU memory, and how much of it their arenas hold",
        runtime.version, runtime.origin
    )))
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
