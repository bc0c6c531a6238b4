//! The backend `tensorflow`: cheap to open, TensorFlow is loaded with the first model.

use crate::complete;
use crate::file::ModelFile;
use crate::graph_names;
use crate::model::{TensorFlowModel, load_operators};
use crate::network::complete_from_graph;
use crate::probe;
use crate::row_probe::expect_batch;
use crate::runtime::{self, TensorFlowRuntime};
use crate::saved_model::{SignatureSelection, read_meta_graph};
use crate::session;
use crate::signature::Signature;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_framework::complete::{ConfigAdditions, SETTING, default_batch, is_needed};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::{log, search};
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{
    Backend, BackendContext, BackendInfo, Completion, ConfigPatch, Error, Kind, ModelContext,
    ModelProbe, Platform, PreferredGroup,
};

/// Parameter of a model: which of the libraries it runs on that the settings `library-NAME` name.
pub const LIBRARY_PARAMETER: &str = "TF_LIBRARY";

/// Setting: the generation of TensorFlow, as in Triton.
const VERSION_SETTING: &str = "version";

pub struct TensorFlow {
    dir: PathBuf,
    library: Option<String>,
    /// The generation that the operator has chosen, `1` or `2`.
    generation: Option<&'static str>,
    /// The log says that the library is of another generation.
    noted: AtomicBool,
    default_batch: usize,
}

impl TensorFlow {
    /// The library for a model, opened unless a model has needed it before.
    pub fn runtime_library(
        &self,
        context: &ModelContext,
    ) -> Result<&'static TensorFlowRuntime, PluginFault> {
        let Some(name) = context.parameter(LIBRARY_PARAMETER).filter(|name| !name.is_empty())
        else {
            return self.default_library(context);
        };
        let setting = format!("{}-{name}", search::SETTING);
        let path = context.setting(&setting).ok_or_else(|| {
            PluginFault::invalid(format!(
                "model '{}' asks for the TensorFlow library '{name}' (parameter {LIBRARY_PARAMETER}), which no \
                 setting names: --backend-config=tensorflow,{setting}=PATH",
                context.name()
            ))
        })?;
        runtime::open_runtime(Some(path), &self.dir)
            .map_err(|fault| fault.within(format_args!("model '{}'", context.name())))
    }

    /// The library of models that ask for none: that of the chosen generation, if the operator names
    /// one for it.
    fn default_library(
        &self,
        context: &ModelContext,
    ) -> Result<&'static TensorFlowRuntime, PluginFault> {
        let of_generation = self
            .generation
            .and_then(|generation| context.setting(&format!("{}-{generation}", search::SETTING)));
        let runtime = runtime::open_runtime(of_generation.or(self.library.as_deref()), &self.dir)?;
        if let Some(generation) = self.generation
            && runtime.version.split('.').next() != Some(generation)
            && !self.noted.swap(true, Ordering::Relaxed)
        {
            context.log().info(format_args!(
                "setting '{VERSION_SETTING}' asks for TensorFlow {generation}; TensorFlow {} is used, which runs \
                 models of both generations (setting '{}-{generation}' names another library)",
                runtime.version,
                search::SETTING
            ));
        }
        Ok(runtime)
    }

    /// What the file declares and the configuration omits.
    fn completed(
        &self,
        context: &ModelContext,
        config: &Config,
    ) -> Result<ConfigAdditions, PluginFault> {
        let file = ModelFile::from_context(context, config)?;
        let params = context.parameters();
        let params = params.iter().filter_map(|(key, value)| Some((key, value.text()?)));
        let selection = SignatureSelection::new(params);
        let read = file.read(config, &selection, graph_names::to_complete)?;
        if let Some(signature) = read.signature.as_ref().filter(|_| file.is_saved_model) {
            // The file alone says all but whether the first dimension is a batch.
            let rows = |signature: &Signature| {
                let opened = self.runtime_library(context).and_then(|runtime| {
                    load_operators(runtime, context, config)?;
                    read.source.open(runtime, &session::Config::default())
                });
                let (session, _) = opened.map_err(|fault| fault.text)?;
                expect_batch(&session, signature)
            };
            return complete::saved_model(config, signature, self.default_batch, rows);
        }
        let runtime = self.runtime_library(context)?;
        let (session, meta_graph) = read.source.open(runtime, &session::Config::default())?;
        match read.signature {
            Some(mut ends) => {
                complete_from_graph(&mut ends, &session);
                let rows = |signature: &Signature| expect_batch(&session, signature);
                complete::graph_def(config, ends, self.default_batch, rows)
            }
            None => {
                let read = read_meta_graph(&meta_graph, &selection, &config.model, &file.path)?;
                let rows = |signature: &Signature| expect_batch(&session, signature);
                complete::saved_model(config, &read.signature, self.default_batch, rows)
            }
        }
    }
}

impl Backend for TensorFlow {
    type Model = TensorFlowModel;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[
            Platform { name: crate::GRAPH_DEF, default_file: crate::DEFAULT_FILE },
            Platform { name: crate::SAVED_MODEL, default_file: crate::DEFAULT_DIRECTORY },
        ],
        flags: backend_flags::PARALLEL_OPEN
            | backend_flags::ACCELERATORS
            | backend_flags::BATCH_INPUTS
            | backend_flags::LISTS_FIELDS
            | backend_flags::GRAPH_LEVELS
            | backend_flags::OPERATION_LIBRARIES
            | backend_flags::OWN_VERSION_SETTING,
        // KIND_AUTO is the CPU, also on machines with GPUs: whether the library can use them is
        // known once it is open.
        instance_kinds: &[Kind::Cpu, Kind::Gpu, Kind::Model],
        preferred: &[PreferredGroup { kind: Kind::Cpu, count: 1 }],
        ..BackendInfo::new("tensorflow", env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        log::send_to(context.log());
        Ok(Self {
            dir: PathBuf::from(context.dir()),
            library: context.setting(search::SETTING).map(str::to_owned),
            generation: read_generation(context.setting(VERSION_SETTING))?,
            noted: AtomicBool::new(false),
            default_batch: default_batch(context.setting(SETTING), complete::DEFAULT_BATCH)?,
        })
    }

    fn model_probe(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
        probe::probe_files(probe)
    }

    fn autocomplete(&self, context: &ModelContext) -> Result<Completion, Error> {
        let config = Config::from_context(context);
        if !is_needed(&config) {
            return Ok(Completion::default());
        }
        let additions = self.completed(context, &config).map_err(|fault| {
            fault.within(format_args!("autofill failed for model '{}'", config.model))
        })?;
        Ok(additions.log(context.log(), &config.model).map(ConfigPatch::Text).into())
    }

    fn runtime(&self) -> String {
        match runtime::opened_runtime() {
            Some(runtime) => format!("TensorFlow {}", runtime.version),
            // Not loaded until a model needs it, so that an idle server stays small.
            None => "TensorFlow".to_owned(),
        }
    }
}

/// The value of the setting `version`.
fn read_generation(value: Option<&str>) -> Result<Option<&'static str>, PluginFault> {
    match value {
        None => Ok(None),
        Some("1") => Ok(Some("1")),
        Some("2") => Ok(Some("2")),
        Some(other) => Err(PluginFault::invalid(format!(
            "--backend-config=tensorflow,{VERSION_SETTING}={other} chooses the generation of TensorFlow, which is 1 \
             or 2; the parameter 'backend_version' of a model chooses a version of this backend"
        ))),
    }
}
