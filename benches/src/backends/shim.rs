//! Cost of the custom.h shim: a library called through host and shim in this process, compared with
//! direct calls.
//!
//! Includes all host work for one request: views, the call into the plugin, the response. The test
//! plugin does the same work natively.

use crate::Result;
use crate::options::Options;
use crate::repository::empty;
use crate::schedulers::samples::request;
use crate::table::{Table, median, spread, verdict};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trtserver_base::clock::now_ns;
use trtserver_base::error;
use trtserver_base::host_policy::HostPolicy;
use trtserver_base::stats::BatchExecution;
use trtserver_isolation::ProcessLauncher;
use trtserver_plugin_host::model::{BackendInstance, BackendModel};
use trtserver_plugin_host::{
    AdapterOptions, BackendDirs, Backends, FrameHold, InstanceFacts, ModelFacts, TensorNames,
    ViewOptions,
};
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput};
use trtserver_request::{DType, InferResponse, InputTensor, ModelSignature, ResponseSink};

pub const COLUMNS: &[&str] =
    &["shim", "ns a call", "bare library", "added ns", "native plugin", "spread", "target", ""];
const ROW: &str = "backends shim identity 64";
/// Target: nanoseconds that shim and host add to a call.
const MAX_ADDED_NS: f64 = 2000.0;
const VALUES: usize = 16;
const SOURCES: [(&str, &str); 3] = [
    ("identity.c", include_str!("identity.c")),
    ("direct.c", include_str!("direct.c")),
    ("custom.h", include_str!("custom.h")),
];

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    if !options.wants(ROW) {
        return Ok(());
    }
    table.measured(ROW.to_owned(), one(options));
    Ok(())
}

fn one(options: &Options) -> Result<Vec<String>> {
    let folder = empty()?;
    let version = folder.path().join("1");
    fs::create_dir(&version).map_err(|e| format!("{}: {e}", version.display()))?;
    for (name, text) in SOURCES {
        let file = folder.path().join(name);
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let library = version.join("libcustom.so");
    let direct = folder.path().join("direct");
    compile(folder.path(), &["-shared", "-fPIC", "identity.c", "-o"], &library)?;
    compile(folder.path(), &["direct.c", "-ldl", "-o"], &direct)?;

    let backends = in_this_process(options)?;
    let mut shim = InProcessModel::new(&backends, "custom", folder.path(), VALUES)?;
    let mut native = InProcessModel::new(&backends, "probe", folder.path(), VALUES)?;
    let (mut bare, mut through_shim, mut through_host) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 * options.passes {
        bare.push(bare_call(&direct, &library)?);
        through_shim.push(shim.pass(options.pass / 4)?);
        through_host.push(native.pass(options.pass / 4)?);
    }
    let added = median(&through_shim) - median(&bare);
    Ok(vec![
        format!("{:.0}", median(&through_shim)),
        format!("{:.0}", median(&bare)),
        format!("{added:.0}"),
        format!("{:.0}", median(&through_host)),
        format!("{:.0} %", spread(&through_shim) * 100.0),
        format!("<={MAX_ADDED_NS:.0}"),
        verdict(added <= MAX_ADDED_NS).to_owned(),
    ])
}

/// The installed backends, all local.
pub fn in_this_process(options: &Options) -> Result<Backends> {
    let dirs = [options.dist.join("backends"), options.probe.clone()];
    local(options, &dirs, "custom")
}

/// The backends of these folders, `name` without isolation.
pub fn local(options: &Options, dirs: &[PathBuf], name: &str) -> Result<Backends> {
    let here = BTreeMap::from([("isolation".to_owned(), "none".to_owned())]);
    let settings = BTreeMap::from([(name.to_owned(), here)]);
    let adapters =
        AdapterOptions { dirs: vec![options.dist.join("plugins")], ..Default::default() };
    let dirs = BackendDirs { given: dirs.to_vec(), default: Vec::new() };
    let opened =
        Backends::open(dirs, &settings, adapters, false, Arc::new(ProcessLauncher::default()));
    opened.map_err(|e| e.message)
}

pub fn compile(folder: &Path, args: &[&str], to: &PathBuf) -> Result<()> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    let done = command.current_dir(folder).args(["-std=gnu11", "-O2"]).args(args).arg(to).output();
    match done {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        Err(e) => Err(format!("the C compiler cannot be run: {e}")),
    }
}

fn bare_call(direct: &Path, library: &Path) -> Result<f64> {
    let done = Command::new(direct).arg(library).arg("1000000").output();
    let done = done.map_err(|e| format!("{}: {e}", direct.display()))?;
    let text = String::from_utf8_lossy(&done.stdout);
    text.trim().parse().map_err(|_| String::from_utf8_lossy(&done.stderr).into_owned())
}

/// A model to be opened in this process, and what is asked of it.
pub struct InProcessCase<'a> {
    pub config: ModelConfig,
    /// The directory of the model, which has one version, 1.
    pub dir: &'a Path,
    /// Shape of the input.
    pub shape: Vec<i64>,
    /// The bytes of the output; none: those of the input.
    pub expected: Option<Bytes>,
    /// Threads of the instance.
    pub threads: u32,
}

/// An instance of a model, ready to be called.
pub struct InProcessModel {
    shape: Vec<i64>,
    expected: Option<Bytes>,
    instance: BackendInstance,
    hold: FrameHold,
    signature: Arc<ModelSignature>,
    names: Arc<TensorNames>,
    right: Arc<AtomicU64>,
}

/// Compares the response with the input.
struct Compare(Bytes, Arc<AtomicU64>);

impl ResponseSink for Compare {
    fn send(&mut self, response: error::Result<Option<InferResponse>>, _: bool) {
        if let Ok(Some(response)) = response
            && response.outputs.iter().any(|output| *output.data.payload() == self.0)
        {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn config(backend: &str, values: usize) -> ModelConfig {
    let dims = vec![values as i64];
    let (input, output) = (
        ModelInput {
            name: "INPUT0".into(),
            data_type: DataType::TypeFp32.into(),
            dims: dims.clone(),
            ..Default::default()
        },
        ModelOutput {
            name: "OUTPUT0".into(),
            data_type: DataType::TypeFp32.into(),
            dims,
            ..Default::default()
        },
    );
    ModelConfig {
        name: "identity".into(),
        backend: backend.into(),
        platform: if backend == "tensorflow" {
            "tensorflow_graphdef".into()
        } else {
            String::new()
        },
        default_model_filename: model_file(backend).into(),
        input: vec![input],
        output: vec![output],
        ..Default::default()
    }
}

fn model_file(backend: &str) -> &'static str {
    if backend == "tensorflow" { "model.graphdef" } else { "libcustom.so" }
}

impl InProcessModel {
    /// A model that copies its input.
    pub fn new(backends: &Backends, backend: &str, dir: &Path, values: usize) -> Result<Self> {
        let (config, shape) = (config(backend, values), vec![values as i64]);
        Self::open(backends, InProcessCase { config, dir, shape, expected: None, threads: 1 })
    }

    pub fn open(backends: &Backends, case: InProcessCase<'_>) -> Result<Self> {
        let InProcessCase { config, dir, shape, expected, threads } = case;
        let signature = Arc::new(ModelSignature::new(&config, |_| None).map_err(|e| e.message)?);
        let facts = ModelFacts {
            name: "identity",
            version: 1,
            dir,
            version_dir: &dir.join("1"),
            file: &config.default_model_filename,
            config: &config,
            signature: &signature,
            n_instances: 1,
            threads,
            host_policy: None,
            state: std::ptr::null_mut(),
        };
        let backend = backends
            .get(&config.backend)
            .ok_or(format!("no backend '{}' installed", config.backend))?;
        let model =
            BackendModel::open(&backend, &facts, &Default::default()).map_err(|e| e.message)?;
        let facts = InstanceFacts {
            name: "identity_0_cpu",
            kind: 2,
            ordinal: 0,
            device: -1,
            threads,
            max_rows: 1,
            profiles: &[],
            secondary_devices: &[],
            host_policy: &HostPolicy::new("cpu"),
            load_limit: None,
            streams: Default::default(),
            nice: 0,
            drain: Duration::ZERO,
        };
        let instance = BackendInstance::open(&model, &facts).map_err(|e| e.message)?;
        let names = Arc::new(TensorNames::new(&signature));
        let (hold, right) = (FrameHold::new(), Arc::default());
        Ok(Self { shape, expected, instance, hold, signature, names, right })
    }

    /// Correct responses so far.
    pub fn right(&self) -> u64 {
        self.right.load(Ordering::Relaxed)
    }

    /// Nanoseconds per call.
    pub fn pass(&mut self, length: Duration) -> Result<f64> {
        let values: i64 = self.shape.iter().product();
        let data = Bytes::from(vec![7; 4 * values as usize]);
        let begin = Instant::now();
        let (mut calls, before) = (0, self.right());
        while begin.elapsed() < length {
            for _ in 0..1000 {
                self.call(&data)?;
            }
            calls += 1000;
        }
        let elapsed = begin.elapsed();
        match self.right() - before {
            right if right == calls => Ok(elapsed.as_nanos() as f64 / calls as f64),
            right => Err(format!("{right} of {calls} responses are correct")),
        }
    }

    pub fn call(&mut self, data: &Bytes) -> Result<()> {
        let expected = self.expected.as_ref().unwrap_or(data).clone();
        let sink = Compare(expected, Arc::clone(&self.right));
        let shape = self.shape[..].into();
        let input = InputTensor { index: 0, dtype: DType::Fp32, shape, data: data.clone().into() };
        let request = request(&self.signature, None, input, sink);
        request.responder.queued(now_ns());
        let execution = Arc::new(BatchExecution::new(0, 1, 1, now_ns(), &Arc::default()));
        request.responder.executed_in(Arc::clone(&execution));
        let style = ViewOptions { signature: &self.signature, names: &self.names, gpu: None };
        self.hold.fill(1, &mut vec![request], &style, &execution);
        let BackendInstance::Local(instance) = &mut self.instance else {
            return Err("the backend is not in this process".into());
        };
        instance.execute(&self.hold).map_err(|e| e.message)?;
        self.hold.frame().fail_unanswered(&|_| error::Error::internal("no response"));
        self.hold.recycle();
        Ok(())
    }
}
