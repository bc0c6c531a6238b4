//! The backend `onnxruntime`: cheap to open, ONNX Runtime is loaded with the first model.

use crate::complete;
use crate::model::{OnnxModel, file_of};
use crate::options::Options;
use crate::runtime::{self, Runtime};
use crate::session::Session;
use std::path::PathBuf;
use trtserver_framework::config::Config;
use trtserver_framework::fault::Fault;
use trtserver_framework::{log, search};
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{
    Backend, BackendContext, BackendInfo, Completion, ConfigPatch, Error, ModelContext, Platform,
};

pub struct Onnx {
    dir: PathBuf,
    library: Option<String>,
    default_batch: usize,
}

impl Onnx {
    /// The library, opened unless a model has needed it before.
    pub fn runtime_library(&self) -> Result<&'static Runtime, Fault> {
        runtime::open(self.library.as_deref(), &self.dir)
    }
}

impl Backend for Onnx {
    type Model = OnnxModel;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: "onnxruntime_onnx", default_file: crate::DEFAULT_FILE }],
        flags: backend_flags::PARALLEL_OPEN,
        ..BackendInfo::new("onnxruntime", env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        log::send_to(context.log());
        Ok(Self {
            dir: PathBuf::from(context.dir()),
            library: context.setting(search::SETTING).map(str::to_owned),
            default_batch: complete::default_batch(context.setting(complete::SETTING))?,
        })
    }

    fn runtime(&self) -> String {
        match runtime::current() {
            Some(runtime) => format!("ONNX Runtime {}", runtime.version),
            // Not loaded until a model needs it, so that an idle server stays small.
            None => "ONNX Runtime".to_owned(),
        }
    }

    fn autocomplete(&self, context: &ModelContext) -> Result<Completion, Error> {
        let config = Config::of(context);
        if !complete::is_needed(&config) {
            return Ok(Completion::default());
        }
        let file = file_of(context)?;
        let session = Session::open(self.runtime_library()?, &file, &Options::for_reading())
            .map_err(|fault| {
                let (model, path) = (&config.model, file.display());
                fault.within(format_args!("autofill failed for model '{model}' from {path}"))
            })?;
        let patch = complete::patch(&config, &session.signature, self.default_batch)?;
        Ok(patch.map(ConfigPatch::Text).into())
    }
}
