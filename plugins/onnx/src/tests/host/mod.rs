//! The least host that can run the plugin: no queues, no threads, answers collected in memory.

pub mod merge;
mod table;

use std::ffi::CString;
use std::ptr;
use std::sync::Arc;
pub use table::{Answer, Failure, LOG, Output, PATCH, RELEASED};
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::{InstanceDesc, ModelDesc, TensorDecl, instance_kind};
use trtserver_plugin_api::abi::extensions::{
    AUTOCOMPLETE, AUTOCOMPLETE_VERSION, AutocompleteExtension,
};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::request::{Batch, Request, RequestedOutput};
use trtserver_plugin_api::abi::types::*;
use trtserver_plugin_api::author::export;

const NONE: Str = Str { p: ptr::null(), n: 0 };

/// A text that lives as long as the tests do.
pub fn text(text: &str) -> Str {
    let n = text.len() as u64;
    Str { p: CString::new(text).unwrap().into_raw().cast(), n }
}

pub fn leak<T>(list: Vec<T>) -> *const T {
    list.leak().as_ptr()
}

/// Any address: this host has one log for all.
const SCOPE: *mut Scope = ptr::dangling_mut();

static HOST: std::sync::OnceLock<usize> = std::sync::OnceLock::new();

pub fn plugin() -> &'static BackendTable {
    let host = *HOST.get_or_init(|| Box::into_raw(Box::new(table::table())) as usize);
    // SAFETY: the table is leaked, the plugin's is static.
    unsafe { &*export::main::<crate::backend::Onnx>(host as *const HostTable) }
}

fn check(error: *mut Error) -> Result<(), Failure> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: of `error_new`, given to us.
    Err(*unsafe { Box::from_raw(error.cast::<Failure>()) })
}

pub fn params(list: &[(&str, &str)]) -> (*const Param, u32) {
    let of = |&(key, value): &(&str, &str)| Param {
        key: text(key),
        kind: param::STRING,
        pad: 0,
        text: text(value),
        bits: 0,
    };
    (leak(list.iter().map(of).collect()), list.len() as u32)
}

pub type Handle = *mut BackendHandle;

pub fn open(settings: &[(&str, &str)], dir: &str) -> Result<Handle, Failure> {
    let (settings, n) = params(settings);
    let mut out = ptr::null_mut();
    // SAFETY: everything lent is leaked.
    check(unsafe {
        (plugin().backend_open)(SCOPE, text("onnxruntime"), text(dir), settings, n, &raw mut out)
    })?;
    Ok(out)
}

pub fn decl(name: &str, dtype: u32, dims: &[i64]) -> TensorDecl {
    reshaped(name, dtype, dims, dims)
}

pub fn reshaped(name: &str, dtype: u32, dims: &[i64], model_dims: &[i64]) -> TensorDecl {
    TensorDecl {
        name: text(name),
        dtype,
        rank: dims.len() as u32,
        dims: leak(dims.to_vec()),
        model_dims: leak(model_dims.to_vec()),
        model_rank: model_dims.len() as u32,
        flags: 0,
    }
}

/// A descriptor of one of the test models.
pub fn model(file: &str, max: i32, inputs: Vec<TensorDecl>, outputs: Vec<TensorDecl>) -> ModelDesc {
    ModelDesc {
        size: size_of::<ModelDesc>() as u64,
        scope: SCOPE,
        name: text("M"),
        version: 1,
        dir: text(""),
        version_dir: text(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")),
        file: text(file),
        config_pb: Bytes { p: ptr::null(), n: 0 },
        config_json: text("{}"),
        settings: ptr::null(),
        n_settings: 0,
        autocomplete: 1,
        params: ptr::null(),
        n_params: 0,
        max_batch_size: max,
        n_inputs: inputs.len() as u32,
        n_outputs: outputs.len() as u32,
        inputs: leak(inputs),
        outputs: leak(outputs),
        graph_level: 0,
        n_instances: 1,
        threads: 1,
        pad: 0,
        reserved: [0; 4],
    }
}

pub fn complete(plugin_handle: Handle, desc: ModelDesc) -> Result<String, Failure> {
    PATCH.lock().unwrap().clear();
    let desc = Box::leak(Box::new(desc));
    // SAFETY: the handle is open, the descriptor leaked.
    let extension = unsafe {
        let found = plugin().get_extension.unwrap()(text(AUTOCOMPLETE), AUTOCOMPLETE_VERSION);
        &*found.cast::<AutocompleteExtension>()
    };
    // SAFETY: plugin and descriptor are valid during the call.
    check(unsafe { (extension.autocomplete)(plugin_handle, desc) })?;
    Ok(PATCH.lock().unwrap().clone())
}

struct OpenModel(*mut ModelHandle);

// SAFETY: a model is shared by its instances, whatever their threads.
unsafe impl Send for OpenModel {}
// SAFETY: as above.
unsafe impl Sync for OpenModel {}

impl Drop for OpenModel {
    fn drop(&mut self) {
        // SAFETY: open, closed once, after its instances.
        unsafe { (plugin().model_close)(self.0) }
    }
}

/// One instance of a loaded model; the model goes with the last one.
pub struct Loaded {
    instance: *mut InstanceHandle,
    model: Arc<OpenModel>,
}

// SAFETY: these tests use an instance on one thread at a time.
unsafe impl Send for Loaded {}

pub fn load(handle: Handle, desc: ModelDesc) -> Result<Loaded, Failure> {
    load_on(handle, desc, instance_kind::CPU)
}

pub fn load_on(handle: Handle, desc: ModelDesc, kind: u32) -> Result<Loaded, Failure> {
    let mut model = ptr::null_mut();
    let desc = Box::leak(Box::new(desc));
    // SAFETY: the handle is open, the descriptor leaked.
    check(unsafe { (plugin().model_open)(handle, desc, &raw mut model) })?;
    instance(&Arc::new(OpenModel(model)), kind)
}

fn instance(model: &Arc<OpenModel>, kind: u32) -> Result<Loaded, Failure> {
    // SAFETY: every field is a number or a pointer that may be null.
    let mut desc: InstanceDesc = unsafe { std::mem::zeroed() };
    desc.size = size_of::<InstanceDesc>() as u64;
    desc.scope = SCOPE;
    desc.name = text("M_0");
    desc.kind = kind;
    desc.threads = 1;
    desc.device_id = -1;
    let desc = Box::leak(Box::new(desc));
    let mut instance = ptr::null_mut();
    // SAFETY: the model is open, the descriptor leaked.
    check(unsafe { (plugin().instance_open)(model.0, desc, &raw mut instance) })?;
    Ok(Loaded { instance, model: model.clone() })
}

impl Loaded {
    /// A further instance of the same model.
    pub fn sibling(&self) -> Loaded {
        instance(&self.model, instance_kind::CPU).unwrap()
    }

    /// Runs the calls as one batch.
    pub fn run(&self, requests: &mut [Ask]) -> Vec<Answer> {
        let mut answers: Vec<Answer> = requests.iter().map(|_| Answer::default()).collect();
        self.run_into(requests, &mut answers);
        answers
    }

    pub fn run_into(&self, requests: &mut [Ask], answers: &mut [Answer]) {
        let raw: Vec<Request> = requests
            .iter_mut()
            .zip(answers.iter_mut())
            .map(|(request, answer)| request.raw(answer))
            .collect();
        let pointers: Vec<*const Request> = raw.iter().map(ptr::from_ref).collect();
        let mut batch = Batch {
            size: size_of::<Batch>() as u64,
            id: 1,
            n_requests: raw.len() as u32,
            rows: raw.iter().map(|request| request.batch_size).sum(),
            requests: pointers.as_ptr(),
            exec_start_ns: 0,
            compute_start_ns: 0,
            compute_end_ns: 0,
            exec_end_ns: 0,
            reserved: [0; 4],
        };
        // SAFETY: instance and batch are alive during the call.
        let error = unsafe { (plugin().execute)(self.instance, &raw mut batch) };
        assert_eq!(check(error), Ok(()));
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: open, closed once, before its model.
        unsafe { (plugin().instance_close)(self.instance) }
    }
}

/// One request of a test: inputs as name, type, shape and pieces of bytes.
#[derive(Default)]
pub struct Ask {
    pub batch: u32,
    pub inputs: Vec<Tensor>,
    pub requested: Vec<RequestedOutput>,
    pub cancelled: u32,
}

impl Ask {
    pub fn new(batch: u32) -> Self {
        Self { batch, ..Self::default() }
    }

    pub fn input(self, name: &str, dtype: u32, shape: &[i64], bytes: &[u8]) -> Self {
        self.pieces(name, dtype, shape, &[bytes])
    }

    pub fn pieces(mut self, name: &str, dtype: u32, shape: &[i64], pieces: &[&[u8]]) -> Self {
        let part = |bytes: &&[u8]| {
            // Aligned, and leaked like all the rest.
            let mut block = vec![0u128; bytes.len().div_ceil(16)];
            let ptr: *mut u8 = block.as_mut_ptr().cast();
            // SAFETY: the block is large enough.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), ptr, bytes.len()) };
            block.leak();
            Buf {
                ptr,
                bytes: bytes.len() as u64,
                memory: Memory::CPU,
                ready: ptr::null_mut(),
                memory_handle: 0,
            }
        };
        let parts: Vec<Buf> = pieces.iter().map(part).collect();
        self.inputs.push(Tensor {
            name: text(name),
            index: u32::MAX,
            dtype,
            rank: shape.len() as u32,
            flags: 0,
            shape: leak(shape.to_vec()),
            bytes: pieces.iter().map(|piece| piece.len() as u64).sum(),
            n_parts: parts.len() as u32,
            pad: 0,
            parts: leak(parts),
        });
        self
    }

    pub fn want(mut self, name: &str) -> Self {
        self.requested.push(RequestedOutput { name: text(name), index: u32::MAX, classes: 0 });
        self
    }

    fn raw(&mut self, answer: &mut Answer) -> Request {
        Request {
            size: size_of::<Request>() as u64,
            handle: ptr::null_mut(),
            responder: ptr::from_mut(answer).cast(),
            id: NONE,
            correlation_id_string: NONE,
            correlation_id: 0,
            flags: 0,
            batch_size: self.batch,
            priority: 0,
            received_ns: 0,
            queued_ns: 0,
            deadline_ns: 0,
            cancelled: &raw const self.cancelled,
            n_inputs: self.inputs.len() as u32,
            n_requested_outputs: self.requested.len() as u32,
            n_params: 0,
            pad: 0,
            inputs: self.inputs.as_ptr(),
            requested_outputs: self.requested.as_ptr(),
            params: ptr::null(),
            reserved: [0; 4],
        }
    }
}
