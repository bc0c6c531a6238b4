//! The plugin interface's backend, model and instance, for any model format.
//!
//! A backend is cheap to open: ONNX Runtime is loaded with the first model.

use crate::accelerators::AcceleratorSettings;
use crate::execute::OnnxInstance;
use crate::external_data;
use crate::gpu::buckets::BucketSwitches;
use crate::gpu::{GpuInstance, PreparedInstance, open_prepared};
use crate::model::{ModelSource, OnnxModel, SessionVariant, log_label};
use crate::options::Options;
use crate::provider::ExecutionProvider;
use crate::row_probe;
use crate::runtime::{self, OnnxRuntime};
use crate::session::OnnxSession;
use crate::session_entries;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trtserver_framework::complete;
use trtserver_framework::config::Config;
use trtserver_framework::execute;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::file_contents::explain_contents;
use trtserver_framework::model_files::{FilePlaces, file_places};
use trtserver_framework::{log, search};
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::abi::types::memory_type;
use trtserver_plugin_api::author::{
    AnyThread, Backend, BackendContext, BackendInfo, Batch, BatchSize, Completion, ConfigPatch,
    Device, Error, Instance, InstanceContext, Kind, Model, ModelContext, ModelProbe, Scope,
};

/// The batch size of a model that can batch and declares none.
const DEFAULT_BATCH: usize = 4;

/// Where instances take inputs and write outputs.
const CPU_AND_GPU: u32 = 1 << memory_type::CPU | 1 << memory_type::GPU;

/// What distinguishes the plugins of this engine: their models' files.
pub trait ModelFormat: Sized + Send + Sync + 'static {
    /// Name, version and platforms of the backend; the flag `ACCELERATORS` if its models may
    /// request those of ONNX Runtime, `BATCH_INPUTS` if they may have ragged and batch inputs.
    const INFO: BackendInfo;
    /// As [`Backend::model_probe`].
    ///
    /// # Errors
    /// The directory holds no such model.
    fn probe(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
        let _ = probe;
        Ok(None)
    }

    /// The graph of a model version. `config` lists no inputs or no outputs if it is to be
    /// completed.
    ///
    /// # Errors
    /// The text is complete: it names the model and the file.
    fn graph(context: &ModelContext, config: &Config) -> Result<ModelGraph, PluginFault>;

    /// Whether [`ModelFormat::graph`] works with an incomplete configuration, so that it can be
    /// completed.
    fn can_complete(config: &Config) -> bool {
        let _ = config;
        true
    }
}

/// An ONNX graph: the contents of a file, or made from one.
pub struct ModelGraph {
    /// Named in messages, and read if there are no `bytes`.
    pub file: PathBuf,
    /// A serialized `ModelProto`.
    pub bytes: Option<Vec<u8>>,
}

impl ModelGraph {
    /// Why the library cannot read the file, if its contents tell.
    pub fn explain(&self, fault: PluginFault) -> PluginFault {
        match self.bytes {
            None => match explain_contents(&self.file) {
                Some(what) => fault.within(what),
                None => fault,
            },
            Some(_) => fault,
        }
    }

    /// Refuses a file that names other files outside of the model.
    pub(crate) fn check_files(
        &self,
        model: &str,
        places: &FilePlaces,
        entries: &[(String, String)],
    ) -> Result<(), PluginFault> {
        if self.bytes.is_some() || !session_entries::is_onnx_format(&self.file, entries) {
            return Ok(());
        }
        let folder = entries.iter().find(|(key, _)| key == session_entries::EXTERNAL_FOLDER);
        external_data::check_external_data(
            model,
            places,
            &self.file,
            folder.map(|(_, folder)| Path::new(folder)),
        )
    }
}

/// The backend of a plugin.
pub struct Engine<F> {
    dir: PathBuf,
    library: Option<String>,
    default_batch: usize,
    accelerators: AcceleratorSettings,
    switches: BucketSwitches,
    kinds: &'static [Kind],
    format: PhantomData<F>,
}

impl<F: ModelFormat> Engine<F> {
    /// The library, opened unless a model has needed it before.
    fn runtime_library(&self) -> Result<&'static OnnxRuntime, PluginFault> {
        runtime::open_runtime(F::INFO.name, self.library.as_deref(), &self.dir)
    }

    /// Whether the library can run models on GPUs. If it cannot be opened the first model reports
    /// why.
    fn has_gpu_library(&self) -> bool {
        let cuda = ExecutionProvider::Cuda.name();
        self.runtime_library().is_ok_and(|library| {
            library.offers_gpu_api && library.providers().iter().any(|name| name == cuda)
        })
    }
}

impl<F: ModelFormat> Backend for Engine<F> {
    type Model = EngineModel<F>;

    const INFO: BackendInfo = BackendInfo {
        // Files declare wrong shapes of outputs, which `findings.rs` checks.
        flags: backend_flags::PARALLEL_OPEN
            | backend_flags::FREE_OUTPUTS
            | backend_flags::LISTS_FIELDS
            | backend_flags::GRAPH_LEVELS
            | F::INFO.flags,
        instance_kinds: &[Kind::Gpu, Kind::Cpu, Kind::Model],
        input_memory_types: CPU_AND_GPU,
        output_memory_types: CPU_AND_GPU,
        // The copies of one batch run beside the computation of another.
        gpu_max_in_flight: 2,
        ..F::INFO
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        log::send_to(context.log());
        let mut engine = Self {
            dir: PathBuf::from(context.dir()),
            library: context.setting(search::SETTING).map(str::to_owned),
            default_batch: complete::default_batch(
                context.setting(complete::SETTING),
                DEFAULT_BATCH,
            )?,
            accelerators: AcceleratorSettings::new(|key| context.setting(key))?,
            switches: BucketSwitches::from_settings(|key| context.setting(key))?,
            kinds: Self::INFO.instance_kinds,
            format: PhantomData,
        };
        if context.has_gpus() && !engine.has_gpu_library() {
            engine.kinds = &[Kind::Cpu, Kind::Model];
        }
        Ok(engine)
    }

    fn instance_kinds(&self) -> &'static [Kind] {
        self.kinds
    }

    fn runtime(&self) -> String {
        match runtime::opened_runtime() {
            Some(runtime) => format!("ONNX Runtime {}", runtime.version),
            // Not loaded until a model needs it, so that an idle server stays small.
            None => "ONNX Runtime".to_owned(),
        }
    }

    fn model_probe(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
        F::probe(probe)
    }

    fn autocomplete(&self, context: &ModelContext) -> Result<Completion, Error> {
        let config = Config::from_context(context);
        if !complete::is_needed(&config) || !F::can_complete(&config) {
            return Ok(Completion::default());
        }
        let graph = F::graph(context, &config)?;
        let options = Options::for_reading();
        graph.check_files(&config.model, &file_places(context), &options.entries)?;
        let place = format!("autofill failed for model '{}'", config.model);
        let (runtime, label) =
            (self.runtime_library()?, log_label(&config.model, context.version()));
        let session =
            OnnxSession::open(runtime, &label, &graph, &options, None).map_err(|fault| {
                let file = graph.file.display();
                graph.explain(fault).within(format_args!("{place} from {file}"))
            })?;
        let (tensors, default_batch) = (session.signature.tensors(), self.default_batch);
        let rows = || row_probe::expect_batch(&session);
        let additions = complete::config_patch(&config, &tensors, default_batch, rows)
            .map_err(|fault| fault.within(place))?;
        Ok(additions.log(context.log(), &config.model).map(ConfigPatch::Text).into())
    }
}

/// A model version of a plugin.
pub struct EngineModel<F> {
    source: ModelSource,
    /// The session of all instances that are not on a GPU.
    shared: Mutex<Option<Arc<OnnxModel>>>,
    format: PhantomData<F>,
}

impl<F> EngineModel<F> {
    fn shared(&self, log: &Scope) -> Result<Arc<OnnxModel>, Error> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = &*shared {
            return Ok(Arc::clone(model));
        }
        Ok(Arc::clone(shared.insert(Arc::new(self.source.open(
            None,
            &SessionVariant::default(),
            log,
        )?))))
    }
}

impl<F: ModelFormat> Model for EngineModel<F> {
    type Backend = Engine<F>;
    type Instance = EngineInstance<F>;

    fn open(backend: &Arc<Engine<F>>, context: &ModelContext) -> Result<Self, Error> {
        let config = Config::from_context(context);
        let settings = (&backend.accelerators, backend.switches);
        if F::INFO.flags & backend_flags::BATCH_INPUTS == 0 {
            config.refuse_ragged(F::INFO.name)?;
        }
        let graph = |config: &Config| F::graph(context, config);
        let library = || backend.runtime_library();
        let source = ModelSource::new(context, config, settings, graph, library)?;
        let mut model = Self { source, shared: Mutex::default(), format: PhantomData };
        let facts = &model.source.config.facts;
        let (on_gpus, others) = (facts.gpu_instances, facts.other_instances);
        if others || !on_gpus {
            model.shared(context.log())?;
        }
        if !on_gpus {
            // No further session is opened.
            model.source.graph.bytes = None;
        }
        Ok(model)
    }
}

/// An instance of a plugin.
pub struct EngineInstance<F> {
    instance: OnDevice,
    format: PhantomData<F>,
}

/// An instance by the device that executes it.
enum OnDevice {
    Cpu(Box<OnnxInstance>),
    Gpu(Box<GpuInstance>),
    /// On a GPU, in sessions for some batch sizes.
    Prepared(Box<PreparedInstance>),
}

impl OnDevice {
    fn open_gpu(source: &ModelSource, device: Device, scope: &Scope) -> Result<Self, PluginFault> {
        if let Some(sessions) = open_prepared(source, &device, scope)? {
            let prepared = PreparedInstance::new(sessions, device, scope);
            return Ok(Self::Prepared(Box::new(prepared)));
        }
        let opened = source.open(Some(&device), &SessionVariant::default(), scope)?;
        Ok(Self::Gpu(Box::new(GpuInstance::new(opened, device, scope)?)))
    }
}

impl<F: ModelFormat> Instance for EngineInstance<F> {
    type Model = EngineModel<F>;
    // Large operators run on the session's own threads.
    const ANY_THREAD: AnyThread<Self> = AnyThread::YES;

    fn open(model: &Arc<EngineModel<F>>, context: &InstanceContext) -> Result<Self, Error> {
        let instance = match (context.kind(), context.device()) {
            (Kind::Gpu, Some(device)) if model.source.config.facts.gpu_instances => {
                let opened = OnDevice::open_gpu(&model.source, device, context.log());
                opened
                    .map_err(|fault| fault.within(format_args!("instance '{}'", context.name())))?
            }
            (Kind::Gpu, _) => {
                return Err(Error::unsupported(format_args!(
                    "instance '{}' of model '{}' is of KIND_GPU, but has no GPU, or its model no instance group of that \
                     kind",
                    context.name(),
                    model.source.config.model
                )));
            }
            _ => OnDevice::Cpu(Box::new(OnnxInstance::new(&model.shared(context.log())?))),
        };
        Ok(Self { instance, format: PhantomData })
    }

    fn batch_sizes(&self) -> Vec<BatchSize> {
        match &self.instance {
            OnDevice::Cpu(_) | OnDevice::Gpu(_) => Vec::new(),
            OnDevice::Prepared(instance) => instance.batch_sizes(),
        }
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        match &mut self.instance {
            OnDevice::Cpu(instance) => execute::execute_batch(&mut **instance, batch),
            OnDevice::Gpu(instance) => execute::execute_batch(&mut **instance, batch),
            OnDevice::Prepared(instance) => execute::execute_batch(&mut **instance, batch),
        }
    }
}
