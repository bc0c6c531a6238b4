//! A session: a graph opened with options, the tensors it declares, and `Run`.
//!
//! One session serves all instances of a model version: `Run` may be called from several threads at
//! once, and the weights are in memory once.

use crate::binding::IoBinding;
use crate::gpu::wait_for_stream;
use crate::log::ModelScope;
use crate::options::Options;
use crate::plugin::ModelGraph;
use crate::provider_session;
use crate::runtime::{OnnxRuntime, ort};
use crate::value::read_info;
use ort_sys::{ONNXType, OrtRunOptions, OrtSession, OrtSessionOptions, OrtTypeInfo, OrtValue};
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::Arc;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::search::read_c_text;
use trtserver_framework::shape::MAX_RANK;
use trtserver_plugin_api::author::Device;

/// A tensor as the model file declares it.
#[derive(Debug, Clone)]
pub struct SessionTensor {
    pub name: String,
    /// The same as a C string.
    pub c_name: CString,
    /// ONNX Runtime's number for what it is: a tensor, a sequence, a map, …
    pub kind: i32,
    /// ONNX Runtime's element number; 0 for what is not a tensor.
    pub element: i32,
    /// -1 = dynamic. Empty also when the file does not say how many dimensions there are.
    pub dims: Vec<i64>,
    /// The names that the file gives dynamic dimensions, one for each dimension; empty = none.
    pub dim_names: Vec<String>,
}

/// Inputs and outputs of a model, in its order.
#[derive(Debug, Clone, Default)]
pub struct Signature {
    pub inputs: Vec<SessionTensor>,
    pub outputs: Vec<SessionTensor>,
    /// Inputs with a default in the file: a request may override it.
    pub defaulted: Vec<SessionTensor>,
}

pub struct OnnxSession {
    pub runtime: &'static OnnxRuntime,
    /// Model and version, for the library's log lines.
    model: Arc<str>,
    raw: *mut OrtSession,
    pub signature: Signature,
    /// The GPU on whose compute stream it works.
    device: Option<Device>,
}

// SAFETY: a session may be used from any thread, and by several at once for `Run`.
unsafe impl Send for OnnxSession {}
// SAFETY: the library accepts `Run` of one session from several threads at once; the signature is
// read once and constant from then on.
unsafe impl Sync for OnnxSession {}

impl OnnxSession {
    /// `model` is the one that log lines name, `device` the GPU that the options name.
    pub fn open(
        runtime: &'static OnnxRuntime,
        model: &str,
        graph: &ModelGraph,
        options: &Options,
        device: Option<&Device>,
    ) -> Result<Self, PluginFault> {
        let path = CString::new(graph.file.as_os_str().as_bytes())
            .map_err(|_| PluginFault::invalid("the path of the model holds a NUL byte"))?;
        let model = Arc::from(model);
        let _scope = ModelScope::enter(&model);
        let session_options = SessionOptions::new(runtime, &model, options)?;
        let (env, options) = (runtime.env, session_options.raw);
        let mut raw = ptr::null_mut();
        // SAFETY: environment and options are alive; path or bytes are read during the call only.
        unsafe {
            match &graph.bytes {
                None => ort!(runtime, CreateSession(env, path.as_ptr(), options, &raw mut raw))?,
                Some(bytes) => {
                    let (start, length) = (bytes.as_ptr().cast(), bytes.len());
                    ort!(
                        runtime,
                        CreateSessionFromArray(env, start, length, options, &raw mut raw)
                    )?;
                }
            }
        }
        let device = device.cloned();
        let signature = Signature::default();
        let mut session = Self { runtime, model: Arc::clone(&model), raw, signature, device };
        session.signature = session.read_signature()?;
        Ok(session)
    }

    fn read_signature(&self) -> Result<Signature, PluginFault> {
        let api = self.runtime.api;
        // SAFETY: entries of the table, each used with the count that belongs to it.
        unsafe {
            Ok(Signature {
                inputs: self.declared(
                    (*api).SessionGetInputCount,
                    (*api).SessionGetInputName,
                    (*api).SessionGetInputTypeInfo,
                )?,
                outputs: self.declared(
                    (*api).SessionGetOutputCount,
                    (*api).SessionGetOutputName,
                    (*api).SessionGetOutputTypeInfo,
                )?,
                defaulted: self.declared(
                    (*api).SessionGetOverridableInitializerCount,
                    (*api).SessionGetOverridableInitializerName,
                    (*api).SessionGetOverridableInitializerTypeInfo,
                )?,
            })
        }
    }

    fn declared(
        &self,
        count: Count,
        name: Name,
        info: Info,
    ) -> Result<Vec<SessionTensor>, PluginFault> {
        let mut n = 0;
        // SAFETY: the session is alive; the out pointer is ours.
        self.runtime.outcome(unsafe { count(self.raw, &raw mut n) })?;
        (0..n).map(|index| self.declared_at(index, name, info)).collect()
    }

    fn declared_at(
        &self,
        index: usize,
        name: Name,
        info: Info,
    ) -> Result<SessionTensor, PluginFault> {
        let allocator = self.runtime.allocator;
        let mut c_name: *mut c_char = ptr::null_mut();
        // SAFETY: the index is below the count; the name is ours until it is given back.
        let name = unsafe {
            self.runtime.outcome(name(self.raw, index, allocator, &raw mut c_name))?;
            let name = read_c_text(c_name);
            ort!(self.runtime, AllocatorFree(allocator, c_name.cast()))?;
            name
        };
        let mut type_info: *mut OrtTypeInfo = ptr::null_mut();
        // SAFETY: the caller passes an index below the count; the type information is ours until
        // its release.
        let read = unsafe {
            self.runtime.outcome(info(self.raw, index, &raw mut type_info))?;
            let read = self.read_type(type_info);
            ((*self.runtime.api).ReleaseTypeInfo)(type_info);
            read.map_err(|fault| fault.within(format_args!("tensor '{name}'")))?
        };
        let TensorType { kind, element, dims, dim_names } = read;
        let c_name = CString::new(name.as_bytes())
            .map_err(|_| PluginFault::internal("a tensor name holds a NUL byte"))?;
        Ok(SessionTensor { name, c_name, kind, element, dims, dim_names })
    }

    /// # Safety
    /// `info` is alive.
    unsafe fn read_type(&self, info: *const OrtTypeInfo) -> Result<TensorType, PluginFault> {
        let mut read = TensorType::default();
        let mut tensor = ptr::null();
        let mut shape = [0; MAX_RANK];
        let mut names = [ptr::null::<c_char>(); MAX_RANK];
        // SAFETY: alive by the caller's promise; the cast information belongs to `info`, and so do
        // the names, which are copied.
        unsafe {
            ort!(self.runtime, GetOnnxTypeFromTypeInfo(info, (&raw mut read.kind).cast()))?;
            if read.kind != ONNXType::ONNX_TYPE_TENSOR as i32 {
                return Ok(read);
            }
            ort!(self.runtime, CastTypeInfoToTensorInfo(info, &raw mut tensor))?;
            let (element, rank) = read_info(self.runtime, tensor, &mut shape)?;
            ort!(self.runtime, GetSymbolicDimensions(tensor, names.as_mut_ptr(), rank))?;
            read.element = element;
            // The library reports -1 for dynamic dimensions; treat every negative number like that.
            read.dims = shape[..rank].iter().map(|&dim| dim.max(-1)).collect();
            read.dim_names = names[..rank].iter().map(|&name| read_c_text(name)).collect();
        }
        Ok(read)
    }

    /// Runs the model. `outputs` that are null on entry are allocated by the library and owned by
    /// the caller afterwards; the others are written in place. After an error null ones are still
    /// null.
    ///
    /// # Safety
    /// Names are C strings and inputs are values, alive during the call; no two calls at the same
    /// time share an output.
    pub unsafe fn run(
        &self,
        input_names: &[*const c_char],
        inputs: &[*const OrtValue],
        output_names: &[*const c_char],
        outputs: &mut [*mut OrtValue],
    ) -> Result<(), PluginFault> {
        let options = self.runtime.run_options;
        // SAFETY: the caller's promise.
        unsafe { self.run_with(options, (input_names, inputs), (output_names, outputs)) }
    }

    /// As [`OnnxSession::run`], with other options.
    ///
    /// # Safety
    /// As [`OnnxSession::run`]; the options are alive.
    pub unsafe fn run_with(
        &self,
        options: *const OrtRunOptions,
        (input_names, inputs): (&[*const c_char], &[*const OrtValue]),
        (output_names, outputs): (&[*const c_char], &mut [*mut OrtValue]),
    ) -> Result<(), PluginFault> {
        debug_assert!(input_names.len() == inputs.len() && output_names.len() == outputs.len());
        let _scope = self.enter_log();
        // SAFETY: the caller's promise; lengths match.
        unsafe {
            ort!(
                self.runtime,
                Run(
                    self.raw,
                    options,
                    input_names.as_ptr(),
                    inputs.as_ptr(),
                    inputs.len(),
                    output_names.as_ptr(),
                    outputs.len(),
                    outputs.as_mut_ptr()
                )
            )
        }
    }

    /// Runs the model on a binding.
    ///
    /// # Safety
    /// The binding was created for this session, the memory of its values is valid, and no other
    /// code uses them during the call.
    pub unsafe fn run_bound(&self, binding: &IoBinding) -> Result<(), PluginFault> {
        let options = self.runtime.run_options;
        let _scope = self.enter_log();
        // SAFETY: the caller's promise.
        unsafe { ort!(self.runtime, RunWithBinding(self.raw, options, binding.as_ptr())) }
    }

    /// Log lines of the library on this thread are about this model until the value is dropped.
    pub fn enter_log(&self) -> ModelScope {
        ModelScope::enter(&self.model)
    }

    pub fn as_ptr(&self) -> *mut OrtSession {
        self.raw
    }
}

impl Drop for OnnxSession {
    fn drop(&mut self) {
        if let Some(device) = &self.device {
            // The library frees device and pinned memory, which queued work may use. On a lost
            // device there is no such work.
            let _ = wait_for_stream(device, device.stream());
        }
        // SAFETY: owned, and no run is in progress. Values that it returned own their memory.
        unsafe { ((*self.runtime.api).ReleaseSession)(self.raw) }
    }
}

/// What type information says.
#[derive(Default)]
struct TensorType {
    kind: i32,
    element: i32,
    dims: Vec<i64>,
    dim_names: Vec<String>,
}

type Count = unsafe extern "system" fn(*const OrtSession, *mut usize) -> ort_sys::OrtStatusPtr;
type Name = unsafe extern "system" fn(
    *const OrtSession,
    usize,
    *mut ort_sys::OrtAllocator,
    *mut *mut c_char,
) -> ort_sys::OrtStatusPtr;
type Info = unsafe extern "system" fn(
    *const OrtSession,
    usize,
    *mut *mut OrtTypeInfo,
) -> ort_sys::OrtStatusPtr;

/// Options of a session that is being created.
struct SessionOptions {
    runtime: &'static OnnxRuntime,
    raw: *mut OrtSessionOptions,
}

impl SessionOptions {
    fn new(
        runtime: &'static OnnxRuntime,
        model: &str,
        requested: &Options,
    ) -> Result<Self, PluginFault> {
        let log_id = CString::new(model)
            .map_err(|_| PluginFault::invalid("the name of the model holds a NUL byte"))?;
        let mut raw = ptr::null_mut();
        // SAFETY: the out pointer is ours.
        unsafe { ort!(runtime, CreateSessionOptions(&raw mut raw))? };
        let options = Self { runtime, raw };
        // SAFETY: the options are alive.
        unsafe {
            // Loggers of the session and of its runs have this id.
            ort!(runtime, SetSessionLogId(raw, log_id.as_ptr()))?;
            ort!(runtime, SetIntraOpNumThreads(raw, requested.intra_threads))?;
            ort!(runtime, SetInterOpNumThreads(raw, requested.inter_threads))?;
            ort!(runtime, SetSessionExecutionMode(raw, requested.mode))?;
            ort!(runtime, SetSessionGraphOptimizationLevel(raw, requested.graph))?;
            match requested.arena {
                true => ort!(runtime, EnableCpuMemArena(raw))?,
                false => ort!(runtime, DisableCpuMemArena(raw))?,
            }
            match requested.pattern {
                true => ort!(runtime, EnableMemPattern(raw))?,
                false => ort!(runtime, DisableMemPattern(raw))?,
            }
        }
        for (key, value) in &requested.entries {
            let (Ok(c_key), Ok(c_value)) =
                (CString::new(key.as_str()), CString::new(value.as_str()))
            else {
                return Err(PluginFault::invalid(format!("parameter '{key}' holds a NUL byte")));
            };
            // SAFETY: both strings are copied.
            unsafe { ort!(runtime, AddSessionConfigEntry(raw, c_key.as_ptr(), c_value.as_ptr())) }
                .map_err(|fault| fault.within(format_args!("parameter '{key}'")))?;
        }
        for provider in &requested.providers {
            // SAFETY: the options are alive; the stream of an instance outlives its session.
            unsafe { provider_session::append_provider(runtime, raw, provider, requested.device)? };
        }
        Ok(options)
    }
}

impl Drop for SessionOptions {
    fn drop(&mut self) {
        // SAFETY: ours; a session copies what it needs.
        unsafe { ((*self.runtime.api).ReleaseSessionOptions)(self.raw) }
    }
}
