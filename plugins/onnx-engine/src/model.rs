//! A model version: what its sessions are opened from, and a session with the plan that
//! configuration and graph agree on.

use crate::accelerators::{AcceleratorOptions, AcceleratorSettings};
use crate::check::{TensorPlan, TensorSlot};
use crate::findings::RunFindings;
use crate::gpu::buckets::{self, BucketSwitches, Switch};
use crate::gpu::{preload::preload_cuda, session::expect_gpu_api};
use crate::options::Options;
use crate::plugin::ModelGraph;
use crate::provider::ExecutionProvider;
use crate::provider_options::MEMORY_LIMIT;
use crate::provider_session::SessionDevice;
use crate::runtime::OnnxRuntime;
use crate::session::OnnxSession;
use crate::session_entries;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_framework::check;
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::accept_shape;
use trtserver_framework::model_files::file_places;
use trtserver_framework::shape::MAX_RANK;
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_api::author::{Device, Error, ModelContext, Scope};

/// What distinguishes the sessions of a model on a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionVariant {
    /// Its runs are replays of a CUDA graph.
    pub graph: bool,
    /// What the arena may take, if not what the model may.
    pub limit: Option<u64>,
}

/// What the sessions of a model version are opened from.
pub struct ModelSource {
    pub config: Config,
    pub graph: ModelGraph,
    pub version: i64,
    /// Which batch sizes instances on GPUs are prepared for.
    pub switches: BucketSwitches,
    options: Options,
    accelerators: AcceleratorOptions,
    runtime: &'static OnnxRuntime,
    /// Names the version in the library's log lines.
    label: String,
    findings: Arc<RunFindings>,
    /// The notes of a plan were logged; each session has the same.
    noted: AtomicBool,
}

impl ModelSource {
    /// Reads options and accelerators from the configuration. `runtime` opens the library; it is
    /// called once they are known to be valid.
    pub fn new(
        context: &ModelContext,
        config: Config,
        (settings, switches): (&AcceleratorSettings, BucketSwitches),
        graph: impl FnOnce(&Config) -> Result<ModelGraph, PluginFault>,
        runtime: impl FnOnce() -> Result<&'static OnnxRuntime, PluginFault>,
    ) -> Result<Self, PluginFault> {
        let params: Vec<_> = context.parameters().iter().collect();
        let params = || params.iter().filter_map(|(key, value)| Some((*key, value.text()?)));
        let threads = u32::try_from(context.threads()).unwrap_or(u32::MAX);
        let within = |fault: PluginFault| {
            fault.within(format_args!("unable to load model '{}'", config.model))
        };
        let (places, version_dir) = (file_places(context), Path::new(context.version_dir()));
        let settings_of_backend = context.settings();
        let of_backend = settings_of_backend.iter();
        let of_backend = of_backend.filter_map(|(key, value)| Some((key, value.text()?)));
        let of_model = (context.name(), &places, version_dir);
        let entries =
            session_entries::read_entries(of_backend, params(), of_model).map_err(within)?;
        let options =
            Options::new(threads, context.graph_level(), params(), entries).map_err(within)?;
        let mut accelerators = AcceleratorOptions::new(&config, params(), settings)?;
        let mut switches = switches.with_parameters(params()).map_err(within)?;
        if let Some(value) = accelerators.take_graph_option() {
            let subject = format!("parameter '{}' of accelerator 'cuda'", buckets::GRAPHS);
            switches.graphs = Switch::parse(&subject, &value).map_err(within)?;
        }
        if !config.facts.gpu_instances {
            let own = params().map(|(key, _)| key);
            let own = own
                .filter(|key| [buckets::BUCKETS, buckets::GRAPHS, buckets::SHARED].contains(key));
            accelerators.ineffective.extend(own.map(str::to_owned));
        }
        for parameter in &accelerators.ineffective {
            context.log().warning(format_args!(
                "model '{}': parameter '{parameter}' has no effect: the model has no instance of KIND_GPU",
                config.model
            ));
        }
        let graph = graph(&config)?;
        graph.check_files(&config.model, &places, &options.entries)?;
        let runtime = runtime()?;
        accelerators.expect_available(&config.model, &runtime.label(), &runtime.providers())?;
        if config.facts.gpu_instances {
            expect_gpu_api(runtime)
                .map_err(|fault| fault.within(format_args!("model '{}'", config.model)))?;
            preload_cuda(&runtime.origin);
        }
        let (findings, noted) = (Arc::default(), AtomicBool::new(false));
        let version = context.version();
        let label = log_label(&config.model, version);
        Ok(Self {
            config,
            graph,
            version,
            switches,
            options,
            accelerators,
            runtime,
            label,
            findings,
            noted,
        })
    }

    /// Providers of the sessions on GPUs.
    pub fn gpu_providers(&self) -> impl Iterator<Item = ExecutionProvider> {
        self.accelerators.gpu.iter().map(|used| used.provider)
    }

    /// What the arena of a further session of an instance may take, if `used` bytes are taken.
    ///
    /// # Errors
    /// Nothing is left.
    pub fn memory_left(&self, used: u64) -> Result<Option<u64>, PluginFault> {
        let mut options = self.accelerators.gpu.iter();
        let limit = options.find_map(|used| used.options.get(MEMORY_LIMIT)?.parse::<u64>().ok());
        match limit {
            Some(limit) if limit <= used => Err(PluginFault {
                code: code::EXHAUSTED,
                text: format!(
                    "{MEMORY_LIMIT} is {limit} bytes, which fewer than all sessions take: {used}"
                ),
            }),
            limit => Ok(limit.map(|limit| limit - used)),
        }
    }

    /// Opens a session, on a GPU or on the CPU.
    pub fn open(
        &self,
        gpu: Option<&Device>,
        variant: &SessionVariant,
        log: &Scope,
    ) -> Result<OnnxModel, Error> {
        if log.progress("opening the session", 100) {
            return Err(Error::cancelled("the load was cancelled"));
        }
        let (config, runtime) = (&self.config, self.runtime);
        let providers = if gpu.is_some() { &self.accelerators.gpu } else { &self.accelerators.cpu };
        let device = gpu.map(|gpu| SessionDevice { id: gpu.id(), stream: gpu.stream() });
        let mut providers = providers.clone();
        for cuda in providers.iter_mut().filter(|used| used.provider == ExecutionProvider::Cuda) {
            if variant.graph {
                cuda.options.insert(buckets::GRAPHS.to_owned(), "1".to_owned());
            }
            if let Some(limit) = variant.limit {
                cuda.options.insert(MEMORY_LIMIT.to_owned(), limit.to_string());
            }
        }
        let options = Options { providers, device, ..self.options.clone() };
        let session = OnnxSession::open(runtime, &self.label, &self.graph, &options, gpu).map_err(
            |fault| {
                let (model, file) = (&config.model, self.graph.file.display());
                self.graph
                    .explain(fault)
                    .within(format_args!("unable to load model '{model}' from {file}"))
            },
        )?;
        let plan = check::check_tensors(config, &session.signature.tensors())?;
        if !self.noted.swap(true, Ordering::Relaxed) {
            for note in &plan.notes {
                log.info(format_args!("model '{}': {note}", config.model));
            }
        }
        let names: Vec<_> = options.providers.iter().map(|used| used.provider.name()).collect();
        log.verbose(format_args!(
            "model '{}': {} inputs, {} outputs, {} threads, ONNX Runtime {} {}",
            config.model,
            plan.inputs.len(),
            plan.outputs.len(),
            options.intra_threads,
            runtime.version,
            names.join(", ")
        ));
        Ok(OnnxModel {
            name: config.model.clone(),
            session,
            plan,
            findings: Arc::clone(&self.findings),
            log: log.clone(),
        })
    }
}

/// Names a model version in the library's log lines.
pub fn log_label(model: &str, version: i64) -> String {
    format!("model '{model}' version {version}")
}

pub struct OnnxModel {
    pub name: String,
    pub session: OnnxSession,
    pub plan: TensorPlan,
    pub findings: Arc<RunFindings>,
    pub log: Scope,
}

impl OnnxModel {
    /// The shape in which the model takes an input of this type, shape and size.
    pub fn accepted<'a>(
        &self,
        slot: &TensorSlot,
        kind: u32,
        given: &'a [i64],
        bytes: usize,
        buffer: &'a mut [i64; MAX_RANK],
    ) -> Result<&'a [i64], PluginFault> {
        accept_shape(&self.name, slot, self.plan.batching, kind, given, bytes, buffer)
    }

    /// Whether a run requires this input.
    pub fn requires(&self, slot: &TensorSlot) -> bool {
        self.session.signature.inputs.iter().any(|input| input.c_name == slot.handle.c_name)
    }

    /// Whether several requests may be executed in one run.
    pub fn can_merge(&self) -> bool {
        self.plan.batching && self.findings.merges()
    }
}
