//! A model version: its file as compiled for a device, and the plan that configuration and file
//! agree on.

use crate::backend::OpenVinoBackend;
use crate::compiled::Compiled;
use crate::device::{CPU, expect_present};
use crate::instance::OpenVinoInstance;
use crate::library::OpenVino;
use crate::model_file::ModelFile;
use crate::network::{DeclaredTensor, Network, Signature, TensorPlan};
use crate::options::{Budget, Options};
use crate::reshape::wanted_shapes;
use crate::row_probe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trtserver_framework::check::{Element, TensorDeclaration, check_tensors};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Error, Model, ModelContext, Scope};

/// Server setting: the folder for compiled models.
pub const CACHE_SETTING: &str = "cache-dir";

/// What a version is opened from.
pub struct ModelSource {
    pub config: Config,
    pub options: Options,
    budget: Budget,
    file: ModelFile,
    library: Arc<OpenVino>,
}

/// A network as compiled for a device.
pub struct CompiledNetwork {
    pub compiled: Compiled,
    pub signature: Signature,
    /// What it was compiled for.
    purpose: Purpose,
}

impl CompiledNetwork {
    /// Whether an error of a run may go unreported: up to 2026.4.1 at least, the library's CPU device
    /// ignores those of networks with dynamic shapes if it has one thread.
    fn is_silent(&self) -> bool {
        let all = self.signature.inputs.iter().chain(&self.signature.outputs);
        let mut dims = all.map(|tensor| tensor.dims.as_ref());
        let is_dynamic = dims.any(|dims| dims.is_none_or(|dims| dims.contains(&-1)));
        let has_one_thread = match self.compiled.property(c"INFERENCE_NUM_THREADS") {
            Some(threads) => threads == "1",
            // A list of devices, of which the CPU may be one.
            None => std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1),
        };
        is_dynamic && has_one_thread
    }
}

/// Two networks with equal purposes are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Purpose {
    path: PathBuf,
    device: String,
    properties: Vec<(&'static str, String)>,
    shapes: Vec<(usize, Vec<i64>)>,
}

impl ModelSource {
    /// # Errors
    /// Names the model, and the parameter or file.
    pub fn new(backend: &OpenVinoBackend, context: &ModelContext) -> Result<Self, PluginFault> {
        let config = Config::from_context(context);
        let within = |fault: PluginFault| {
            fault.within(format_args!("unable to load model '{}'", config.model))
        };
        let parameters: Vec<_> = context.parameters().iter().collect();
        let parameters = parameters.iter().filter_map(|(key, value)| Some((*key, value.text()?)));
        let cache = context.setting(CACHE_SETTING);
        let options = Options::read(parameters, cache).map_err(within)?;
        let budget = Budget { threads: context.threads(), instances: context.n_instances() };
        let file = ModelFile::find(context)?;
        let library = backend.library(context)?;
        if let Some(name) = &options.extension {
            add_extension(&library, context, name).map_err(within)?;
        }
        Ok(Self { config, options, budget, file, library })
    }

    /// Reads and compiles the file for instances of KIND_MODEL or others; `ready` is used if it is
    /// the same.
    ///
    /// # Errors
    /// Names the model and the file.
    pub fn compile(
        &self,
        model_kind: bool,
        ready: Option<&Arc<CompiledNetwork>>,
        log: &Scope,
    ) -> Result<Arc<CompiledNetwork>, PluginFault> {
        let device = self.options.device_for(model_kind);
        let within = |fault: PluginFault| {
            let (model, file) = (&self.config.model, self.file.path.display());
            fault.within(format_args!("unable to load model '{model}' from {file}"))
        };
        if device != CPU {
            self.library
                .devices()
                .and_then(|present| expect_present(device, &present))
                .map_err(within)?;
        }
        let network = Network::read(&self.library, &self.file.path);
        let mut network = network.map_err(|fault| within(self.file.explain(fault)))?;
        let mut signature = network.signature(&self.config).map_err(within)?;
        if signature.outputs.is_empty() {
            let fault = PluginFault::invalid("the library finds no outputs in it");
            return Err(within(self.file.explain(fault)));
        }
        let shapes = wanted_shapes(&self.config, &signature, &self.options);
        let purpose = Purpose {
            path: self.file.path.clone(),
            device: device.to_owned(),
            properties: self.options.properties(device, self.budget),
            shapes,
        };
        if let Some(ready) =
            ready.filter(|ready| ready.purpose == purpose && ready.signature == signature)
        {
            return Ok(Arc::clone(ready));
        }
        if !purpose.shapes.is_empty() {
            network.reshape(&purpose.shapes).map_err(|fault| within(self.reshape_fault(fault)))?;
            signature = network.signature(&self.config).map_err(within)?;
        }
        if log.progress("compiling the model", 100) {
            return Err(PluginFault::from(Error::cancelled("the load was cancelled")));
        }
        let compiled = Compiled::new(&network, device, &purpose.properties).map_err(|fault| {
            within(self.file.explain(fault.within(format_args!("device '{device}'"))))
        })?;
        Ok(Arc::new(CompiledNetwork { compiled, signature, purpose }))
    }

    fn reshape_fault(&self, fault: PluginFault) -> PluginFault {
        fault.within(match self.options.reshape_inputs {
            true => "RESHAPE_IO_LAYERS: the model cannot have the dims of the configuration",
            false => {
                "max_batch_size is above 0, and the model, which was exported for one row, cannot have a dynamic first \
                 dimension: max_batch_size: 0 serves it as it is"
            }
        })
    }
}

/// Adds a library with operations: a file of the model, or one in a place that the operator allows.
fn add_extension(
    library: &OpenVino,
    context: &ModelContext,
    name: &str,
) -> Result<(), PluginFault> {
    let places = model_files::file_places(context);
    let allowed = match Path::new(name).is_absolute() {
        true => places.judge(Path::new(name)),
        false => places.resolve(Path::new(context.version_dir()), name),
    };
    let place = format!("parameter 'CPU_EXTENSION_PATH' is '{name}'");
    let path = allowed.map_err(|refusal| PluginFault::invalid(format!("{place}: {refusal}")))?;
    library.add_extension(&path).map_err(|fault| fault.within(place))
}

/// What runs have shown of a version.
pub struct RunFindings {
    /// An output had another shape than its block.
    wrong_shape: AtomicBool,
    /// An output has not the rows of its run.
    unmergeable: AtomicBool,
}

impl RunFindings {
    fn new(preallocates: bool) -> Self {
        Self { wrong_shape: AtomicBool::new(!preallocates), unmergeable: AtomicBool::new(false) }
    }

    /// Whether outputs of a known shape are written into blocks of the host.
    pub fn preallocates(&self) -> bool {
        !self.wrong_shape.load(Ordering::Relaxed)
    }

    pub fn stop_preallocating(&self) {
        self.wrong_shape.store(true, Ordering::Relaxed);
    }

    /// Whether several requests may be executed in one run.
    pub fn merges(&self) -> bool {
        !self.unmergeable.load(Ordering::Relaxed)
    }

    /// An output whose rows cannot be given to the requests of a batch.
    pub fn stop_merging(&self, log: &Scope, fault: &PluginFault) {
        if !self.unmergeable.swap(true, Ordering::Relaxed) {
            log.warning(format_args!("{fault}; requests are executed one by one from now on"));
        }
    }
}

/// A version on one device.
pub struct LoadedModel {
    pub name: String,
    network: Arc<CompiledNetwork>,
    pub plan: TensorPlan,
    /// The library may report no error of a run.
    pub silent: bool,
    pub findings: RunFindings,
    pub log: Scope,
}

impl std::ops::Deref for LoadedModel {
    type Target = CompiledNetwork;

    fn deref(&self) -> &CompiledNetwork {
        &self.network
    }
}

/// What the instances of a version share.
pub struct OpenVinoModel {
    source: ModelSource,
    /// For instances of KIND_MODEL, and for others.
    loaded: Mutex<[Option<Arc<LoadedModel>>; 2]>,
}

impl OpenVinoModel {
    /// The model for instances of KIND_MODEL or others.
    ///
    /// # Errors
    /// It cannot be compiled, or the configuration does not fit it.
    pub fn loaded(&self, model_kind: bool, log: &Scope) -> Result<Arc<LoadedModel>, PluginFault> {
        self.load(model_kind, None, log)
    }

    fn load(
        &self,
        model_kind: bool,
        ready: Option<&Arc<CompiledNetwork>>,
        log: &Scope,
    ) -> Result<Arc<LoadedModel>, PluginFault> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let place = &mut loaded[usize::from(!model_kind)];
        if let Some(model) = place {
            return Ok(Arc::clone(model));
        }
        let source = &self.source;
        let network = source.compile(model_kind, ready, log)?;
        let plan = check_tensors(&source.config, &network.signature.tensors())?;
        let name = source.config.model.clone();
        if !network.purpose.shapes.is_empty() && plan.batching {
            row_probe::expect_rows(&network.compiled, &network.signature).map_err(|why| {
                PluginFault::invalid(format!(
                    "unable to load model '{name}': with a dynamic first dimension the model does not batch: {why}; \
                     max_batch_size: 0 serves it as it is"
                ))
            })?;
        }
        let property = |key| network.compiled.property(key).unwrap_or_default();
        log.info(format_args!(
            "model '{name}': {}, device {}, {} streams, {} threads, precision {}",
            source.library.label,
            network.purpose.device,
            property(c"NUM_STREAMS"),
            property(c"INFERENCE_NUM_THREADS"),
            property(c"INFERENCE_PRECISION_HINT")
        ));
        let silent = network.is_silent();
        if silent {
            log.warning(format_args!(
                "model '{name}': with one thread OpenVINO reports no errors of runs with dynamic shapes, so that a run \
                 which fails may return empty outputs; two threads (INFERENCE_NUM_THREADS, and a second core) cure it"
            ));
        }
        let is_double = |tensor: &DeclaredTensor| tensor.element() == Element::Known(dtype::FP64);
        if network.signature.inputs.iter().any(is_double) {
            log.warning(format_args!("model '{name}': OpenVINO computes FP64 in FP32"));
        }
        // A block that such a run did not write would pass for an output.
        let findings = RunFindings::new(!silent);
        let model = LoadedModel { name, network, plan, silent, findings, log: log.clone() };
        Ok(Arc::clone(place.insert(Arc::new(model))))
    }
}

impl Model for OpenVinoModel {
    type Backend = OpenVinoBackend;
    type Instance = OpenVinoInstance;

    fn open(backend: &Arc<OpenVinoBackend>, context: &ModelContext) -> Result<Self, Error> {
        let source = ModelSource::new(backend, context)?;
        source.config.refuse_ragged(crate::BACKEND)?;
        for note in &source.options.notes {
            context.log().info(format_args!("model '{}': {note}", source.config.model));
        }
        let model_kind = source.config.facts.model_instances;
        let model = Self { source, loaded: Mutex::default() };
        // Compiled here, so that the load fails and not the first instance.
        model.load(model_kind, context.state::<Arc<CompiledNetwork>>(), context.log())?;
        Ok(model)
    }
}
