//! The plugin interface's backend, model and instance, for any model format.
//!
//! A backend is cheap to open: ONNX Runtime is loaded with the first model.

use crate::execute::OnnxInstance;
use crate::model::OnnxModel;
use crate::options::Options;
use crate::runtime::{self, Runtime};
use crate::session::Session;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use trtserver_framework::complete;
use trtserver_framework::config::Config;
use trtserver_framework::execute;
use trtserver_framework::fault::Fault;
use trtserver_framework::{log, search};
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{
    AnyThread, Backend, BackendContext, BackendInfo, Batch, Completion, ConfigPatch, Error,
    Instance, InstanceContext, Kind, Model, ModelContext, ModelProbe, PreferredGroup,
};

/// The batch size of a model that can batch and declares none.
const DEFAULT_BATCH: usize = 4;

/// What distinguishes the plugins of this engine: their models' files.
pub trait ModelFormat: Sized + Send + Sync + 'static {
    /// Name, version and platforms of the backend.
    const INFO: BackendInfo;
    /// Its models in messages, for example `ONNX models`.
    const MODELS: &'static str;

    /// As [`Backend::model_probe`].
    ///
    /// # Errors
    /// The directory holds no such model.
    fn probe(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
        let _ = probe;
        Ok(None)
    }

    /// The graph of a model version. `config` lists no inputs or no outputs if it is to be completed.
    ///
    /// # Errors
    /// The text is complete: it names the model and the file.
    fn graph(context: &ModelContext, config: &Config) -> Result<Graph, Fault>;

    /// Whether [`ModelFormat::graph`] works with an incomplete configuration, so that it can be completed.
    fn can_complete(config: &Config) -> bool {
        let _ = config;
        true
    }
}

/// An ONNX graph: the contents of a file, or made from one.
pub struct Graph {
    /// Named in messages, and read if there are no `bytes`.
    pub file: PathBuf,
    /// A serialized `ModelProto`.
    pub bytes: Option<Vec<u8>>,
}

/// The backend of a plugin.
pub struct Engine<F> {
    dir: PathBuf,
    library: Option<String>,
    default_batch: usize,
    format: PhantomData<F>,
}

impl<F: ModelFormat> Engine<F> {
    /// The library, opened unless a model has needed it before.
    fn runtime_library(&self) -> Result<&'static Runtime, Fault> {
        runtime::open(F::INFO.name, self.library.as_deref(), &self.dir)
    }
}

impl<F: ModelFormat> Backend for Engine<F> {
    type Model = EngineModel<F>;

    const INFO: BackendInfo = BackendInfo {
        flags: backend_flags::PARALLEL_OPEN,
        // KIND_AUTO is the CPU, also on machines with GPUs.
        preferred: &[PreferredGroup { kind: Kind::Cpu, count: 1 }],
        ..F::INFO
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        log::send_to(context.log());
        Ok(Self {
            dir: PathBuf::from(context.dir()),
            library: context.setting(search::SETTING).map(str::to_owned),
            default_batch: complete::default_batch(
                context.setting(complete::SETTING),
                DEFAULT_BATCH,
            )?,
            format: PhantomData,
        })
    }

    fn runtime(&self) -> String {
        match runtime::current() {
            Some(runtime) => format!("ONNX Runtime {}", runtime.version),
            // Not loaded until a model needs it, so that an idle server stays small.
            None => "ONNX Runtime".to_owned(),
        }
    }

    fn model_probe(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
        F::probe(probe)
    }

    fn autocomplete(&self, context: &ModelContext) -> Result<Completion, Error> {
        let config = Config::of(context);
        if !complete::is_needed(&config) || !F::can_complete(&config) {
            return Ok(Completion::default());
        }
        let graph = F::graph(context, &config)?;
        let place = format!("autofill failed for model '{}'", config.model);
        let session = Session::open(self.runtime_library()?, &graph, &Options::for_reading())
            .map_err(|fault| fault.within(format_args!("{place} from {}", graph.file.display())))?;
        let patch = complete::patch(&config, &session.signature.tensors(), self.default_batch)
            .map_err(|fault| fault.within(place))?;
        Ok(patch.map(ConfigPatch::Text).into())
    }
}

/// A model version of a plugin.
pub struct EngineModel<F> {
    opened: Arc<OnnxModel>,
    format: PhantomData<F>,
}

impl<F: ModelFormat> Model for EngineModel<F> {
    type Backend = Engine<F>;
    type Instance = EngineInstance<F>;

    fn open(backend: &Arc<Engine<F>>, context: &ModelContext) -> Result<Self, Error> {
        let config = Config::of(context);
        if let Some(name) = config.facts.accelerators.first() {
            return Err(Error::unsupported(format_args!(
                "unknown execution accelerator '{name}' requested for model '{}': this plugin runs \
                 {} on the CPU by ONNX Runtime's own kernels and offers no accelerators",
                config.model,
                F::MODELS
            )));
        }
        let graph = F::graph(context, &config)?;
        let opened = OnnxModel::open(context, config, &graph, || backend.runtime_library())?;
        Ok(Self { opened: Arc::new(opened), format: PhantomData })
    }
}

/// An instance of a plugin.
pub struct EngineInstance<F> {
    instance: OnnxInstance,
    format: PhantomData<F>,
}

impl<F: ModelFormat> Instance for EngineInstance<F> {
    type Model = EngineModel<F>;
    // Large operators run on the session's own threads.
    const ANY_THREAD: AnyThread<Self> = AnyThread::YES;

    fn open(model: &Arc<EngineModel<F>>, context: &InstanceContext) -> Result<Self, Error> {
        if context.kind() == Kind::Gpu {
            return Err(Error::unsupported(format_args!(
                "instance '{}' of model '{}' is of KIND_GPU, but this plugin runs {} on the \
                 CPU only; the library offers: {}",
                context.name(),
                model.opened.name,
                F::MODELS,
                model.opened.session.runtime.providers().join(", ")
            )));
        }
        Ok(Self { instance: OnnxInstance::new(&model.opened), format: PhantomData })
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        execute::execute(&mut self.instance, batch)
    }
}
