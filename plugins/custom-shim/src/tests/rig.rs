//! The plugin with one model and one instance, on the fake host of `plugin-api`'s tests.

use super::fake::{Failure, FakeRequest, FakeScope, HOST, failure, text};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::sync::atomic::Ordering;
use tempfile::TempDir;
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::{InstanceDesc, ModelDesc, TensorDecl};
use trtserver_plugin_api::abi::request::{Batch, Request, RequestedOutput, request_flags};
use trtserver_plugin_api::abi::types::{
    BackendHandle, Buf, Bytes, InstanceHandle, Memory, ModelHandle, Param, Tensor, dtype, param,
    tensor_flags,
};
use trtserver_plugin_api::author::export;

pub fn table() -> &'static BackendTable {
    // SAFETY: the host's table is static.
    unsafe { &*export::main::<crate::backend::Custom>(&raw const HOST.0) }
}

fn leak<T>(list: Vec<T>) -> *const T {
    list.leak().as_ptr()
}

fn params(list: &[(&str, &str)]) -> (*const Param, u32) {
    let of = |&(key, value): &(&str, &str)| Param {
        key: text(key),
        kind: param::STRING,
        pad: 0,
        text: text(value),
        bits: 0,
    };
    (leak(list.iter().map(of).collect()), list.len() as u32)
}

/// Compiles `source` to `folder/1/libcustom.so`.
pub fn compile(source: &str, flags: &[&str], folder: &Path) -> PathBuf {
    let version = folder.join("1");
    std::fs::create_dir_all(&version).unwrap();
    let library = version.join("libcustom.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]).args(flags);
    let done = command.arg("-o").arg(&library).arg(source).output().unwrap();
    assert!(done.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&done.stderr));
    library
}

/// What a test says of its model.
#[derive(Default)]
pub struct Model {
    pub name: &'static str,
    pub max_batch_size: i32,
    pub inputs: Vec<(&'static str, &'static [i64])>,
    pub outputs: Vec<(&'static str, &'static [i64])>,
    pub parameters: Vec<(&'static str, &'static str)>,
    pub settings: Vec<(&'static str, &'static str)>,
    /// Beside name and platform.
    pub config: Vec<u8>,
    pub device_id: i32,
}

pub struct Rig {
    pub folder: TempDir,
    pub scope: &'static FakeScope,
    plugin: *mut BackendHandle,
    model: *mut ModelHandle,
    instance: *mut InstanceHandle,
}

impl Rig {
    /// Everything is closed again when something fails.
    pub fn open(folder: TempDir, model: &Model) -> Result<Rig, (Failure, &'static FakeScope)> {
        let scope: &'static FakeScope = Box::leak(Box::default());
        let (plugin, instance) = (ptr::null_mut(), ptr::null_mut());
        let mut rig = Rig { folder, scope, plugin, model: ptr::null_mut(), instance };
        match rig.all(model) {
            Ok(()) => Ok(rig),
            Err(failure) => Err((failure, scope)),
        }
    }

    fn all(&mut self, it: &Model) -> Result<(), Failure> {
        let scope = ptr::from_ref(self.scope).cast_mut().cast();
        let (settings, n_settings) = params(&it.settings);
        let (name, dir) = (text("custom"), text("/plugins"));
        let out = &raw mut self.plugin;
        // SAFETY: everything lent is leaked.
        failure(unsafe { (table().backend_open)(scope, name, dir, settings, n_settings, out) })?;
        let decls = |list: &[(&str, &[i64])]| {
            let of = |(name, dims): &(&str, &[i64])| TensorDecl {
                name: text(name),
                dtype: dtype::INT32,
                rank: dims.len() as u32,
                dims: leak(dims.to_vec()),
                model_dims: leak(dims.to_vec()),
                model_rank: dims.len() as u32,
                flags: 0,
            };
            leak(list.iter().map(of).collect())
        };
        let mut config = Vec::new();
        trtserver_proto_wire::put_bytes(&mut config, 1, it.name.as_bytes());
        trtserver_proto_wire::put_bytes(&mut config, 2, b"custom");
        config.extend(&it.config);
        let folder = self.folder.path().to_str().unwrap();
        let (params, n_params) = params(&it.parameters);
        let desc = Box::leak(Box::new(ModelDesc {
            size: size_of::<ModelDesc>() as u64,
            scope,
            name: text(it.name),
            version: 1,
            dir: text(&format!("{folder}/repository/m")),
            version_dir: text(&format!("{folder}/1")),
            file: text("libcustom.so"),
            config_pb: Bytes { n: config.len() as u64, p: leak(config) },
            config_json: text("{}"),
            settings,
            n_settings,
            autocomplete: 0,
            params,
            n_params,
            max_batch_size: it.max_batch_size,
            inputs: decls(&it.inputs),
            outputs: decls(&it.outputs),
            n_inputs: it.inputs.len() as u32,
            n_outputs: it.outputs.len() as u32,
            graph_level: 0,
            n_instances: 1,
            threads: 1,
            pad: 0,
            reserved: [0; 4],
        }));
        // SAFETY: the handle is open, the descriptor leaked.
        failure(unsafe { (table().model_open)(self.plugin, desc, &raw mut self.model) })?;
        // SAFETY: every field is a number or a pointer that may be null.
        let mut desc: InstanceDesc = unsafe { std::mem::zeroed() };
        desc.size = size_of::<InstanceDesc>() as u64;
        (desc.scope, desc.name, desc.kind) = (scope, text("m_0"), 2);
        desc.device_id = it.device_id;
        let desc = Box::leak(Box::new(desc));
        // SAFETY: as above.
        failure(unsafe { (table().instance_open)(self.model, desc, &raw mut self.instance) })
    }

    pub fn run(&self, asks: &[Ask]) -> Vec<&'static FakeRequest> {
        let made: Vec<(&'static FakeRequest, &'static Request)> =
            asks.iter().map(Ask::request).collect();
        let requests: Vec<*const Request> =
            made.iter().map(|(_, request)| ptr::from_ref(*request)).collect();
        let batch = Box::leak(Box::new(Batch {
            size: size_of::<Batch>() as u64,
            id: 1,
            n_requests: made.len() as u32,
            rows: made.iter().map(|(_, request)| request.batch_size).sum(),
            requests: leak(requests),
            exec_start_ns: 0,
            compute_start_ns: 0,
            compute_end_ns: 0,
            exec_end_ns: 0,
            reserved: [0; 4],
        }));
        // SAFETY: the instance is open, the batch leaked.
        failure(unsafe { (table().execute)(self.instance, batch) }).unwrap();
        made.into_iter().map(|(fake, _)| fake).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // SAFETY: each is open, and closed once.
        unsafe {
            if !self.instance.is_null() {
                (table().instance_close)(self.instance);
            }
            if !self.model.is_null() {
                (table().model_close)(self.model);
            }
            if !self.plugin.is_null() {
                (table().backend_close)(self.plugin);
            }
        }
    }
}

/// Name, shape, pieces, flags.
type Given = (&'static str, Vec<i64>, Vec<Vec<i32>>, u32);

/// A request: INT32 inputs in one or more pieces.
#[derive(Default, Clone)]
pub struct Ask {
    rows: u32,
    inputs: Vec<Given>,
    requested: Vec<(&'static str, u32)>,
    sequence: u64,
    warmup: bool,
}

impl Ask {
    pub fn new(rows: u32) -> Self {
        Self { rows, ..Self::default() }
    }

    /// The index is its place among the declared ones that are given.
    pub fn input(mut self, name: &'static str, shape: &[i64], pieces: &[&[i32]]) -> Self {
        let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
        self.inputs.push((name, shape.to_vec(), pieces, 0));
        self
    }

    pub fn control(mut self, name: &'static str, value: i32) -> Self {
        self.inputs.push((name, vec![1, 1], vec![vec![value]], tensor_flags::CONTROL));
        self
    }

    /// `index` in the configuration.
    pub fn want(mut self, name: &'static str, index: u32) -> Self {
        self.requested.push((name, index));
        self
    }

    pub fn of_sequence(mut self, id: u64) -> Self {
        self.sequence = id;
        self
    }

    pub fn warmup(mut self) -> Self {
        self.warmup = true;
        self
    }

    fn request(&self) -> (&'static FakeRequest, &'static Request) {
        let fake: &'static FakeRequest = Box::leak(Box::default());
        fake.references.store(1, Ordering::SeqCst);
        fake.state.lock().unwrap().requested =
            self.requested.iter().map(|(name, _)| (*name).to_owned()).collect();
        let tensor = |(at, (name, shape, pieces, flags)): (usize, &Given)| {
            let part = |piece: &Vec<i32>| Buf {
                bytes: size_of_val(piece.as_slice()) as u64,
                ptr: leak(piece.clone()).cast_mut().cast(),
                memory: Memory::CPU,
                ready: ptr::null_mut(),
                memory_handle: 0,
            };
            let parts: Vec<Buf> = pieces.iter().map(part).collect();
            Tensor {
                name: text(name),
                index: if *flags == 0 { at as u32 } else { u32::MAX },
                dtype: dtype::INT32,
                rank: shape.len() as u32,
                flags: *flags,
                shape: leak(shape.clone()),
                bytes: parts.iter().map(|part| part.bytes).sum(),
                n_parts: parts.len() as u32,
                pad: 0,
                parts: leak(parts),
            }
        };
        let inputs: Vec<Tensor> = self.inputs.iter().enumerate().map(tensor).collect();
        let requested = self.requested.iter();
        let requested = requested.map(|(name, index)| RequestedOutput {
            name: text(name),
            index: *index,
            classes: 0,
        });
        let requested: Vec<RequestedOutput> = requested.collect();
        let raw = ptr::from_ref(fake).cast_mut();
        let request = Box::leak(Box::new(Request {
            size: size_of::<Request>() as u64,
            handle: raw.cast(),
            responder: raw.cast(),
            id: text(""),
            correlation_id_string: text(""),
            correlation_id: self.sequence,
            flags: if self.warmup { request_flags::WARMUP } else { 0 },
            batch_size: self.rows,
            priority: 0,
            received_ns: 0,
            queued_ns: 0,
            deadline_ns: 0,
            cancelled: fake.cancelled.as_ptr(),
            n_inputs: inputs.len() as u32,
            n_requested_outputs: requested.len() as u32,
            n_params: 0,
            pad: 0,
            inputs: leak(inputs),
            requested_outputs: leak(requested),
            params: ptr::null(),
            reserved: [0; 4],
        }));
        (fake, request)
    }
}

/// The INT32 elements of an output.
pub fn ints(request: &FakeRequest, name: &str) -> (Vec<i64>, Vec<i32>) {
    let state = request.state.lock().unwrap();
    assert_eq!((&state.end, state.ends), (&Some(Ok(())), 1));
    let (kind, shape, bytes) = &state.sent[0].outputs[name];
    assert_eq!(*kind, dtype::INT32);
    let of = |b: &[u8]| i32::from_le_bytes(b.try_into().unwrap());
    (shape.clone(), bytes.chunks_exact(4).map(of).collect())
}

pub fn error(request: &FakeRequest) -> Failure {
    let state = request.state.lock().unwrap();
    assert_eq!((state.sent.len(), state.ends), (0, 1));
    state.end.clone().unwrap().unwrap_err()
}
