//! A session: a graph loaded from a GraphDef or a SavedModel, its tensors, and `Run`.
//!
//! `Run` may be called from several threads at once.

use crate::api::{
    TfBuffer, TfGraph, TfImportOptions, TfOutput, TfSession, TfSessionOptions, TfTensor,
};
use crate::environment;
use crate::runtime::TensorFlowRuntime;
use crate::status::{Status, tf};
use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::search::read_c_text;

pub struct GraphSession {
    pub runtime: &'static TensorFlowRuntime,
    raw: *mut TfSession,
    graph: SessionGraph,
    /// Operations run one after another, on the thread that calls [`GraphSession::run`].
    in_caller: bool,
}

/// How a session is opened and run.
#[derive(Debug, Default)]
pub struct Config {
    /// An encoded `ConfigProto`.
    pub encoded: Vec<u8>,
    pub in_caller: bool,
}

/// `RunOptions` with `inter_op_thread_pool: -1`, the calling thread. It saves the context switches
/// to a pool of one thread and back, three quarters of the CPU time of a small run.
const IN_CALLER: [u8; 11] = [0x18, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];

// SAFETY: TensorFlow allows using sessions and graphs from any thread.
unsafe impl Send for GraphSession {}
// SAFETY: TensorFlow allows several threads to use one session and its graph at once.
unsafe impl Sync for GraphSession {}

impl GraphSession {
    pub fn from_graph_def(
        runtime: &'static TensorFlowRuntime,
        graph_def: &[u8],
        config: &Config,
    ) -> Result<Self, PluginFault> {
        let mut status = Status::new(runtime);
        let graph = SessionGraph::new(runtime);
        let import = ImportOptions::new(runtime);
        let buffer = view(graph_def);
        // SAFETY: graph, buffer and options are alive; the bytes are read during the call.
        unsafe {
            tf!(runtime, status, import_graph_def(graph.raw, &raw const buffer, import.raw))?
        };
        let options = Options::new(runtime, &config.encoded)?;
        // SAFETY: graph and options are alive; the session keeps a reference to the graph.
        let raw = unsafe { tf!(runtime, status, new_session(graph.raw, options.raw))? };
        environment::restore_environment();
        Ok(Self { runtime, raw, graph, in_caller: config.in_caller })
    }

    /// Loads the graph with these tags, restores its variables and runs its initialisation. Also
    /// returns the encoded `MetaGraphDef`.
    pub fn from_saved_model(
        runtime: &'static TensorFlowRuntime,
        dir: &Path,
        tags: &[String],
        config: &Config,
    ) -> Result<(Self, Vec<u8>), PluginFault> {
        let mut status = Status::new(runtime);
        let graph = SessionGraph::new(runtime);
        let options = Options::new(runtime, &config.encoded)?;
        let dir = c_text(dir.as_os_str().as_bytes(), "the path of the model")?;
        let tags: Vec<CString> =
            tags.iter().map(|tag| c_text(tag.as_bytes(), "a tag")).collect::<Result<_, _>>()?;
        let tags: Vec<*const c_char> = tags.iter().map(|tag| tag.as_ptr()).collect();
        let mut meta = OwnedBuffer::new(runtime);
        // SAFETY: all arguments are alive; texts are copied; the graph is new.
        let raw = unsafe {
            let (run, dir, n) = (ptr::null(), dir.as_ptr(), count(tags.len()));
            tf!(
                runtime,
                status,
                load_saved_model(options.raw, run, dir, tags.as_ptr(), n, graph.raw, meta.raw)
            )?
        };
        environment::restore_environment();
        Ok((Self { runtime, raw, graph, in_caller: config.in_caller }, meta.take()))
    }

    /// Output `index` of an operation; `None`: the graph has no such tensor.
    pub fn tensor(&self, operation: &str, index: i32) -> Option<TfOutput> {
        let name = CString::new(operation).ok()?;
        let api = &self.runtime.api;
        // SAFETY: the graph is alive; an operation lives as long as its graph.
        let (operation, outputs) = unsafe {
            let operation = (api.operation_by_name)(self.graph.raw, name.as_ptr());
            if operation.is_null() {
                return None;
            }
            (operation, (api.operation_outputs)(operation))
        };
        (0..outputs).contains(&index).then_some(TfOutput { operation, index })
    }

    /// Type and shape that TensorFlow infers for a tensor: `None` = unknown rank, -1 = unknown
    /// size.
    pub fn describe(&self, tensor: TfOutput) -> (i32, Option<Vec<i64>>) {
        let (api, mut status) = (&self.runtime.api, Status::new(self.runtime));
        // SAFETY: the tensor belongs to the graph, which is alive; `dims` has the announced length.
        unsafe {
            // Reference types, of variables in TF1, are 100 above the type itself.
            let data_type = (api.output_type)(tensor) % 100;
            let rank = tf!(self.runtime, status, tensor_num_dims(self.graph.raw, tensor));
            let Ok(rank) = usize::try_from(rank.unwrap_or(-1)) else { return (data_type, None) };
            let mut dims = vec![-1; rank];
            let (graph, p, n) = (self.graph.raw, dims.as_mut_ptr(), count(rank));
            let known = tf!(self.runtime, status, tensor_shape(graph, tensor, p, n)).is_ok();
            (data_type, known.then_some(dims))
        }
    }

    /// Runs operations for their effects.
    pub fn run_operations(&self, names: &[String]) -> Result<(), PluginFault> {
        if names.is_empty() {
            return Ok(());
        }
        let find = |name: &String| {
            let c_name = c_text(name.as_bytes(), "the name of an operation")?;
            // SAFETY: the graph is alive; an operation lives as long as its graph.
            let operation =
                unsafe { (self.runtime.api.operation_by_name)(self.graph.raw, c_name.as_ptr()) };
            match operation.is_null() {
                true => {
                    Err(PluginFault::invalid(format!("the graph has no operation '{name}' to run")))
                }
                false => Ok(operation.cast_const()),
            }
        };
        let operations = names.iter().map(find).collect::<Result<Vec<_>, PluginFault>>()?;
        let mut status = Status::new(self.runtime);
        let (input, value, output) = (ptr::null(), ptr::null(), ptr::null());
        // SAFETY: the operations belong to this session's graph; the other lists are empty.
        unsafe {
            let (targets, n) = (operations.as_ptr(), count(operations.len()));
            let (options, result, meta) = (ptr::null(), ptr::null_mut(), ptr::null_mut());
            tf!(
                self.runtime,
                status,
                session_run(
                    self.raw, options, input, value, 0, output, result, 0, targets, n, meta
                )
            )
        }
    }

    /// Computes `outputs`. On success each of `results` is a tensor that the caller owns; after an
    /// error they are null.
    ///
    /// # Safety
    /// All tensors belong to this session's graph, `values` are alive, and lists that belong
    /// together have equal lengths.
    pub unsafe fn run(
        &self,
        inputs: &[TfOutput],
        values: &[*mut TfTensor],
        outputs: &[TfOutput],
        results: &mut [*mut TfTensor],
        status: &mut Status,
    ) -> Result<(), PluginFault> {
        let in_caller = view(&IN_CALLER);
        let options = if self.in_caller { &raw const in_caller } else { ptr::null() };
        // SAFETY: the caller's promise.
        unsafe {
            tf!(
                self.runtime,
                status,
                session_run(
                    self.raw,
                    options,
                    inputs.as_ptr(),
                    values.as_ptr(),
                    count(inputs.len()),
                    outputs.as_ptr(),
                    results.as_mut_ptr(),
                    count(outputs.len()),
                    ptr::null(),
                    0,
                    ptr::null_mut()
                )
            )
        }
    }

    pub fn has_gpu(&self) -> bool {
        self.device_types().iter().any(|kind| kind == "GPU")
    }

    /// Types of the devices that the session can use: `CPU`, `GPU`.
    pub fn device_types(&self) -> Vec<String> {
        let (api, mut status) = (&self.runtime.api, Status::new(self.runtime));
        // SAFETY: the session is alive; the list is ours until it is deleted.
        unsafe {
            let Ok(list) = tf!(self.runtime, status, list_devices(self.raw)) else {
                return Vec::new();
            };
            let types = (0..(api.device_count)(list))
                .filter_map(|at| tf!(self.runtime, status, device_type(list, at)).ok())
                .map(|name| read_c_text(name))
                .collect();
            (api.delete_device_list)(list);
            types
        }
    }
}

impl Drop for GraphSession {
    fn drop(&mut self) {
        let mut status = Status::new(self.runtime);
        // SAFETY: ours, and no run is in progress. Tensors that it returned own their memory.
        unsafe {
            // A failure has no consequences: nothing is in flight.
            let _ = tf!(self.runtime, status, close_session(self.raw));
            let _ = tf!(self.runtime, status, delete_session(self.raw));
        }
    }
}

/// A graph; freed with its last session.
struct SessionGraph {
    runtime: &'static TensorFlowRuntime,
    raw: *mut TfGraph,
}

impl SessionGraph {
    fn new(runtime: &'static TensorFlowRuntime) -> Self {
        // SAFETY: a function without conditions.
        Self { runtime, raw: unsafe { (runtime.api.new_graph)() } }
    }
}

impl Drop for SessionGraph {
    fn drop(&mut self) {
        // SAFETY: ours, and this is the only release.
        unsafe { (self.runtime.api.delete_graph)(self.raw) }
    }
}

struct ImportOptions {
    runtime: &'static TensorFlowRuntime,
    raw: *mut TfImportOptions,
}

impl ImportOptions {
    fn new(runtime: &'static TensorFlowRuntime) -> Self {
        // SAFETY: a function without conditions.
        Self { runtime, raw: unsafe { (runtime.api.new_import_options)() } }
    }
}

impl Drop for ImportOptions {
    fn drop(&mut self) {
        // SAFETY: ours, and this is the only release.
        unsafe { (self.runtime.api.delete_import_options)(self.raw) }
    }
}

struct Options {
    runtime: &'static TensorFlowRuntime,
    raw: *mut TfSessionOptions,
}

impl Options {
    fn new(runtime: &'static TensorFlowRuntime, config: &[u8]) -> Result<Self, PluginFault> {
        let mut status = Status::new(runtime);
        // SAFETY: the options are alive; the bytes are copied.
        unsafe {
            let options = Self { runtime, raw: (runtime.api.new_session_options)() };
            tf!(runtime, status, set_config(options.raw, config.as_ptr().cast(), config.len()))?;
            Ok(options)
        }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: ours, and this is the only release; sessions copy what they need.
        unsafe { (self.runtime.api.delete_session_options)(self.raw) }
    }
}

/// A buffer that TensorFlow fills.
struct OwnedBuffer {
    runtime: &'static TensorFlowRuntime,
    raw: *mut TfBuffer,
}

impl OwnedBuffer {
    fn new(runtime: &'static TensorFlowRuntime) -> Self {
        // SAFETY: a function without conditions.
        Self { runtime, raw: unsafe { (runtime.api.new_buffer)() } }
    }

    fn take(&mut self) -> Vec<u8> {
        // SAFETY: the buffer is alive, and null or filled.
        unsafe {
            let TfBuffer { data, length, .. } = *self.raw;
            if data.is_null() || length == 0 {
                return Vec::new();
            }
            std::slice::from_raw_parts(data.cast::<u8>(), length).to_vec()
        }
    }
}

impl Drop for OwnedBuffer {
    fn drop(&mut self) {
        // SAFETY: ours, and this is the only release.
        unsafe { (self.runtime.api.delete_buffer)(self.raw) }
    }
}

/// A buffer over bytes that stay where they are.
fn view(bytes: &[u8]) -> TfBuffer {
    TfBuffer { data: bytes.as_ptr().cast(), length: bytes.len(), free: None }
}

fn c_text(bytes: &[u8], what: &str) -> Result<CString, PluginFault> {
    CString::new(bytes).map_err(|_| PluginFault::invalid(format!("{what} holds a NUL byte")))
}

fn count(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}
