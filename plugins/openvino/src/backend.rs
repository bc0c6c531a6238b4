//! The backend `openvino`: cheap to open, the library is loaded with the first model.

use crate::library::{OPENVINO, OpenVino};
use crate::model::{ModelSource, OpenVinoModel};
use crate::model_file::DEFAULT_FILE;
use crate::probe;
use crate::row_probe;
use std::path::PathBuf;
use std::sync::Arc;
use trtserver_framework::complete::{self, default_batch};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::library_slot::LibrarySlot;
use trtserver_framework::log;
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{
    Backend, BackendContext, BackendInfo, Completion, ConfigPatch, Error, ModelContext, ModelProbe,
    Platform,
};

/// The batch size of a model that can batch and declares none.
const DEFAULT_BATCH: usize = 4;

pub struct OpenVinoBackend {
    dir: PathBuf,
    slot: LibrarySlot<OpenVino>,
    default_batch: usize,
}

impl OpenVinoBackend {
    /// The library, opened unless a model has needed it before.
    ///
    /// # Errors
    /// It cannot be found or used.
    pub fn library(&self, context: &ModelContext) -> Result<Arc<OpenVino>, PluginFault> {
        let setting = context.setting(OPENVINO.setting);
        self.slot.open(&OPENVINO, setting, &self.dir, OpenVino::open)
    }
}

impl Backend for OpenVinoBackend {
    type Model = OpenVinoModel;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: "openvino", default_file: DEFAULT_FILE }],
        flags: backend_flags::PARALLEL_OPEN
            | backend_flags::LISTS_FIELDS
            | backend_flags::V1_BATCH_SIZE,
        ..BackendInfo::new(crate::BACKEND, env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        log::send_to(context.log());
        Ok(Self {
            dir: PathBuf::from(context.dir()),
            slot: LibrarySlot::default(),
            default_batch: default_batch(context.setting(complete::SETTING), DEFAULT_BATCH)?,
        })
    }

    fn runtime(&self) -> String {
        // Not loaded until a model needs it, so that an idle server stays small.
        self.slot.label().unwrap_or_else(|| "OpenVINO".to_owned())
    }

    fn model_probe(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
        probe::probe_files(probe)
    }

    fn autocomplete(&self, context: &ModelContext) -> Result<Completion, Error> {
        if !complete::is_needed(&Config::from_context(context)) {
            return Ok(Completion::default());
        }
        let source = ModelSource::new(self, context)?;
        let config = &source.config;
        let network = source.compile(config.facts.model_instances, None, context.log())?;
        let rows = || row_probe::expect_batch(&network.compiled, &network.signature);
        let tensors = network.signature.tensors();
        let additions = complete::config_patch(config, &tensors, self.default_batch, rows)
            .map_err(|fault| {
                fault.within(format_args!("autofill failed for model '{}'", config.model))
            })?;
        let patch = additions.log(context.log(), &config.model).map(ConfigPatch::Text);
        Ok(Completion::from(patch).with_state(network))
    }
}
