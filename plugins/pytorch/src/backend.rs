//! The backend `pytorch`: cheap to open, torch's library is loaded with the first model.

use crate::complete::{self, DEFAULT_BATCH};
use crate::library::{TORCH, TorchLibrary, open_library};
use crate::loaded::{LoadedPackage, PACKAGE_FILE, PACKAGES, TORCHSCRIPT, TORCHSCRIPT_FILE};
use crate::model::PyTorchModel;
use crate::probe;
use std::path::PathBuf;
use std::sync::Arc;
use trtserver_framework::complete::{SETTING, default_batch, is_needed};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::library_slot::LibrarySlot;
use trtserver_framework::log;
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{
    Backend, BackendContext, BackendInfo, Completion, ConfigPatch, Error, Kind, ModelContext,
    ModelProbe, Platform, PreferredGroup,
};

pub struct PyTorch {
    dir: PathBuf,
    library: LibrarySlot<TorchLibrary>,
    default_batch: usize,
}

impl PyTorch {
    /// # Errors
    /// There is no library, or it cannot be used.
    pub fn torch(&self, context: &ModelContext) -> Result<Arc<TorchLibrary>, PluginFault> {
        self.library.open(&TORCH, context.setting(TORCH.setting), &self.dir, open_library)
    }
}

impl Backend for PyTorch {
    type Model = PyTorchModel;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[
            Platform { name: PACKAGES, default_file: PACKAGE_FILE },
            // Known, so that its refusal says how to convert the model.
            Platform { name: TORCHSCRIPT, default_file: TORCHSCRIPT_FILE },
        ],
        flags: backend_flags::PARALLEL_OPEN
            | backend_flags::LISTS_FIELDS
            | backend_flags::V1_BATCH_SIZE,
        instance_kinds: &[Kind::Cpu],
        preferred: &[PreferredGroup { kind: Kind::Cpu, count: 1 }],
        ..BackendInfo::new(crate::BACKEND, env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        log::send_to(context.log());
        Ok(Self {
            dir: PathBuf::from(context.dir()),
            library: LibrarySlot::default(),
            default_batch: default_batch(context.setting(SETTING), DEFAULT_BATCH)?,
        })
    }

    fn runtime(&self) -> String {
        // Not loaded until a model needs it, so that an idle server stays small.
        self.library.label().unwrap_or_else(|| "PyTorch".to_owned())
    }

    fn model_probe(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
        probe::probe_files(probe)
    }

    fn autocomplete(&self, context: &ModelContext) -> Result<Completion, Error> {
        let config = Config::from_context(context);
        if !is_needed(&config) {
            return Ok(Completion::default());
        }
        let package = LoadedPackage::open(self, context, &config)?;
        let additions = complete::complete_config(&package, &config, self.default_batch);
        let additions = additions.map_err(|fault| {
            fault.within(format_args!("autofill failed for model '{}'", config.model))
        })?;
        let patch = additions.log(context.log(), &config.model).map(ConfigPatch::Text);
        Ok(Completion::from(patch).with_state(Arc::new(package)))
    }
}
