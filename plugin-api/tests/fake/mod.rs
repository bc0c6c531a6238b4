//! A small host for tests: it records what a backend does, and counts what it leaks.
#![allow(dead_code, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]

mod merge;
mod table;

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicIsize, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
pub use table::{ASKED, ERRORS, HOST, RESPONSES};
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::{InstanceDesc, ModelDesc, TensorDecl};
use trtserver_plugin_api::abi::request::{Batch, Request, RequestedOutput};
use trtserver_plugin_api::abi::types::{
    BackendHandle, Buf, Bytes, Error, InstanceHandle, Memory, ModelHandle, Param, Str, Tensor,
    dtype, param, tensor_flags,
};

/// One test at a time: the counters are global.
pub fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    let guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    ERRORS.store(0, Ordering::SeqCst);
    RESPONSES.store(0, Ordering::SeqCst);
    ASKED.lock().unwrap_or_else(PoisonError::into_inner).clear();
    guard
}

/// Nothing created by the backend is left.
pub fn assert_clean() {
    assert_eq!(ERRORS.load(Ordering::SeqCst), 0, "errors left");
    assert_eq!(RESPONSES.load(Ordering::SeqCst), 0, "responses left");
}

#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub code: u32,
    pub flags: u32,
    pub text: String,
}

/// The extension table of a backend.
pub fn extension<T>(table: &BackendTable, name: &str, version: u32) -> Option<&'static T> {
    let get = table.get_extension?;
    unsafe { get(text(name), version).cast::<T>().as_ref() }
}

/// Takes an error returned by the backend.
pub fn failure(error: *mut Error) -> Result<(), Failure> {
    if error.is_null() {
        return Ok(());
    }
    let boxed = unsafe { Box::from_raw(error.cast::<Failure>()) };
    ERRORS.fetch_sub(1, Ordering::SeqCst);
    Err(*boxed)
}

/// Name, labels, value.
pub type FakeMetric = (String, Vec<(String, String)>, f64);

#[derive(Default)]
pub struct FakeScope {
    pub records: Mutex<Vec<(u32, String)>>,
    pub patches: Mutex<Vec<(u32, Vec<u8>)>>,
    pub metrics: Mutex<Vec<FakeMetric>>,
}

impl FakeScope {
    pub fn said(&self, what: &str) -> bool {
        self.records.lock().unwrap().iter().any(|(_, text)| text.contains(what))
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SentResponse {
    /// Type, shape and bytes by name.
    pub outputs: BTreeMap<String, (u32, Vec<i64>, Vec<u8>)>,
    pub params: Vec<(String, u32, u64)>,
}

impl SentResponse {
    pub fn floats(&self, name: &str) -> Vec<f32> {
        let bytes = &self.outputs[name].2;
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    }
}

#[derive(Default)]
pub struct RequestState {
    pub sent: Vec<SentResponse>,
    pub end: Option<Result<(), Failure>>,
    pub ends: usize,
    pub requested: Vec<String>,
}

/// Both sides of a request as the fake host tracks them.
#[derive(Default)]
pub struct FakeRequest {
    pub state: Mutex<RequestState>,
    pub references: AtomicIsize,
    pub releases: AtomicU32,
    pub cancelled: AtomicU32,
}

pub struct FakeResponse {
    pub request: *const FakeRequest,
    pub outputs: BTreeMap<String, (u32, Vec<i64>, Data)>,
    pub params: Vec<(String, u32, u64)>,
}

pub enum Data {
    Host(Vec<u64>, usize),
    Donated(Vec<u8>),
}

impl Data {
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Data::Donated(bytes) => bytes.clone(),
            Data::Host(block, n) => block.iter().flat_map(|w| w.to_le_bytes()).take(*n).collect(),
        }
    }
}

/// A request for a test: inputs by name, each FP32 and in one or more parts, and further INT32 inputs.
/// Inputs named `STATE…` are states.
#[derive(Default, Clone)]
pub struct RequestSpec {
    pub inputs: Vec<(&'static str, Vec<Vec<f32>>)>,
    pub ints: Vec<(&'static str, Vec<i32>)>,
    pub requested: Vec<&'static str>,
    pub params: Vec<(&'static str, &'static str)>,
    pub cancelled: bool,
}

impl RequestSpec {
    pub fn new(values: &[f32]) -> RequestSpec {
        RequestSpec {
            inputs: vec![("IN", vec![values.to_vec()])],
            requested: vec!["OUT"],
            ..RequestSpec::default()
        }
    }
}

/// A static text with its terminator.
pub fn text(s: &str) -> Str {
    let bytes = Box::leak([s.as_bytes(), &[0]].concat().into_boxed_slice());
    Str { p: bytes.as_ptr(), n: s.len() as u64 }
}

pub fn read(s: Str) -> String {
    if s.n == 0 {
        return String::new();
    }
    let bytes = unsafe { std::slice::from_raw_parts(s.p, s.n as usize + 1) };
    assert_eq!(bytes.last(), Some(&0), "a text without its terminator");
    std::str::from_utf8(&bytes[..s.n as usize]).unwrap().to_owned()
}

fn params(list: &[(&str, &str)]) -> &'static [Param] {
    let one = |(key, value): &(&str, &str)| Param {
        key: text(key),
        kind: param::STRING,
        pad: 0,
        text: text(value),
        bits: 0,
    };
    Box::leak(list.iter().map(one).collect::<Vec<_>>().into_boxed_slice())
}

/// A backend with one open model and one open instance. Descriptors are leaked.
pub struct Bench {
    pub table: &'static BackendTable,
    pub scope: &'static FakeScope,
    pub backend: *mut BackendHandle,
    pub model: *mut ModelHandle,
    pub instance: *mut InstanceHandle,
}

impl Bench {
    pub fn model_desc(
        scope: &'static FakeScope,
        parameters: &[(&str, &str)],
    ) -> &'static ModelDesc {
        static DIMS: [i64; 1] = [-1];
        let decl = |name: &str| TensorDecl {
            name: text(name),
            dtype: 11,
            rank: 1,
            dims: DIMS.as_ptr(),
            model_dims: DIMS.as_ptr(),
            model_rank: 1,
            flags: 0,
        };
        let (inputs, outputs) =
            (Box::leak(Box::new([decl("IN")])), Box::leak(Box::new([decl("OUT")])));
        let list = params(parameters);
        Box::leak(Box::new(ModelDesc {
            size: size_of::<ModelDesc>() as u64,
            scope: ptr::from_ref(scope).cast_mut().cast(),
            name: text("m"),
            version: 3,
            dir: text("/models/m"),
            version_dir: text("/models/m/3"),
            file: text(""),
            config_pb: Bytes { p: ptr::null(), n: 0 },
            config_json: text("{}"),
            settings: list.as_ptr(),
            n_settings: list.len() as u32,
            autocomplete: 1,
            params: list.as_ptr(),
            n_params: list.len() as u32,
            max_batch_size: 0,
            inputs: inputs.as_ptr(),
            outputs: outputs.as_ptr(),
            n_inputs: 1,
            n_outputs: 1,
            graph_level: 0,
            n_instances: 1,
            threads: 2,
            pad: 0,
            reserved: [0; 4],
        }))
    }

    fn instance_desc(scope: &'static FakeScope) -> &'static InstanceDesc {
        Box::leak(Box::new(InstanceDesc {
            size: size_of::<InstanceDesc>() as u64,
            scope: ptr::from_ref(scope).cast_mut().cast(),
            name: text("m_0"),
            host_policy_json: text("{}"),
            kind: 2,
            ordinal: 0,
            device_id: -1,
            passive: 0,
            device_uuid: [0; 16],
            cpus: ptr::null(),
            n_cpus: 0,
            threads: 2,
            numa_node: -1,
            max_rows: 1,
            cu_context: ptr::null_mut(),
            cu_stream: ptr::null_mut(),
            cu_copy_in: ptr::null_mut(),
            cu_copy_out: ptr::null_mut(),
            profiles: ptr::null(),
            n_profiles: 0,
            n_secondary: 0,
            secondary: ptr::null(),
            reserved: [0; 4],
        }))
    }

    pub fn backend(table: &'static BackendTable) -> Result<Bench, Failure> {
        let scope: &'static FakeScope = Box::leak(Box::default());
        let (model, instance) = (ptr::null_mut(), ptr::null_mut());
        let mut bench = Bench { table, scope, backend: ptr::null_mut(), model, instance };
        let raw = bench.raw_scope();
        let (name, dir) = (text("x"), text("/plugins"));
        let error =
            unsafe { (table.backend_open)(raw, name, dir, ptr::null(), 0, &raw mut bench.backend) };
        failure(error).map(|()| bench)
    }

    pub fn open(
        table: &'static BackendTable,
        parameters: &[(&str, &str)],
    ) -> Result<Bench, Failure> {
        let mut bench = Bench::backend(table)?;
        let opened = bench.open_model(parameters).and_then(|()| bench.open_instance());
        if let Err(error) = opened {
            bench.close();
            return Err(error);
        }
        Ok(bench)
    }

    fn open_model(&mut self, parameters: &[(&str, &str)]) -> Result<(), Failure> {
        let desc = Bench::model_desc(self.scope, parameters);
        failure(unsafe { (self.table.model_open)(self.backend, desc, &raw mut self.model) })
    }

    fn open_instance(&mut self) -> Result<(), Failure> {
        let desc = Bench::instance_desc(self.scope);
        failure(unsafe { (self.table.instance_open)(self.model, desc, &raw mut self.instance) })
    }

    pub fn raw_scope(&self) -> *mut trtserver_plugin_api::abi::types::Scope {
        ptr::from_ref(self.scope).cast_mut().cast()
    }

    pub fn close(self) -> &'static FakeScope {
        unsafe {
            if !self.instance.is_null() {
                (self.table.instance_close)(self.instance);
            }
            if !self.model.is_null() {
                (self.table.model_close)(self.model);
            }
            (self.table.backend_close)(self.backend);
        }
        self.scope
    }

    /// Executes a batch; returns the requests as `execute` left them.
    pub fn run(
        &self,
        requests: &[RequestSpec],
    ) -> (Vec<&'static FakeRequest>, Result<(), Failure>) {
        let made: Vec<_> = requests.iter().map(make_request).collect();
        let pointers: Vec<*const Request> =
            made.iter().map(|(_, request)| ptr::from_ref(*request)).collect();
        let pointers = Box::leak(pointers.into_boxed_slice());
        let batch = Box::leak(Box::new(Batch {
            size: size_of::<Batch>() as u64,
            id: 7,
            n_requests: requests.len() as u32,
            rows: requests.len() as u32,
            requests: pointers.as_ptr(),
            exec_start_ns: 0,
            compute_start_ns: 0,
            compute_end_ns: 0,
            exec_end_ns: 0,
            reserved: [0; 4],
        }));
        let error = unsafe { (self.table.execute)(self.instance, batch) };
        (made.into_iter().map(|(fake, _)| fake).collect(), failure(error))
    }
}

fn make_request(request: &RequestSpec) -> (&'static FakeRequest, &'static Request) {
    let fake: &'static FakeRequest = Box::leak(Box::default());
    fake.references.store(1, Ordering::SeqCst);
    fake.cancelled.store(request.cancelled.into(), Ordering::SeqCst);
    fake.state.lock().unwrap().requested =
        request.requested.iter().map(|w| (*w).to_owned()).collect();
    let floats = request.inputs.iter().map(|(name, parts)| tensor(name, parts));
    let ints = request.ints.iter().map(|(name, values)| {
        let bits = values.iter().map(|i| f32::from_bits(*i as u32)).collect();
        Tensor { dtype: dtype::INT32, ..tensor(name, &[bits]) }
    });
    let inputs: Vec<Tensor> = floats.chain(ints).collect();
    let requested = |w: &&str| {
        let index = if w.starts_with("STATE") { u32::MAX } else { 0 };
        RequestedOutput { name: text(w), index, classes: 0 }
    };
    let requested: Vec<RequestedOutput> = request.requested.iter().map(requested).collect();
    let (inputs, requested) = (inputs.leak(), requested.leak());
    let params = params(&request.params);
    let raw = ptr::from_ref(fake).cast_mut();
    let request = Box::leak(Box::new(Request {
        size: size_of::<Request>() as u64,
        handle: raw.cast(),
        responder: raw.cast(),
        id: text("id"),
        correlation_id_string: text(""),
        correlation_id: 0,
        flags: 0,
        batch_size: 1,
        priority: 0,
        received_ns: 1,
        queued_ns: 2,
        deadline_ns: 0,
        cancelled: fake.cancelled.as_ptr(),
        n_inputs: inputs.len() as u32,
        n_requested_outputs: requested.len() as u32,
        n_params: params.len() as u32,
        pad: 0,
        inputs: inputs.as_ptr(),
        requested_outputs: requested.as_ptr(),
        params: params.as_ptr(),
        reserved: [0; 4],
    }));
    (fake, request)
}

fn tensor(name: &str, parts: &[Vec<f32>]) -> Tensor {
    let buf = |part: &Vec<f32>| {
        let part = Box::leak(part.clone().into_boxed_slice());
        Buf {
            ptr: part.as_mut_ptr().cast(),
            bytes: size_of_val(part) as u64,
            memory: Memory::CPU,
            ready: ptr::null_mut(),
            memory_handle: 0,
        }
    };
    let bufs = parts.iter().map(buf).collect::<Vec<_>>().leak();
    let n: usize = parts.iter().map(Vec::len).sum();
    let shape = Box::leak(Box::new([n as i64]));
    Tensor {
        name: text(name),
        index: 0,
        dtype: 11,
        rank: 1,
        flags: if name.starts_with("STATE") { tensor_flags::STATE } else { 0 },
        shape: shape.as_ptr(),
        bytes: bufs.iter().map(|b| b.bytes).sum(),
        n_parts: bufs.len() as u32,
        pad: 0,
        parts: bufs.as_ptr(),
    }
}
