//! The backend `tensorflow`: cheap to open, TensorFlow is loaded with the first model.

use crate::model::TensorFlowModel;
use crate::runtime::{self, Runtime};
use std::path::PathBuf;
use trtserver_framework::fault::Fault;
use trtserver_framework::{log, search};
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{Backend, BackendContext, BackendInfo, Error, Platform};

pub struct TensorFlow {
    dir: PathBuf,
    library: Option<String>,
}

impl TensorFlow {
    /// The library, opened unless a model has needed it before.
    pub fn runtime_library(&self) -> Result<&'static Runtime, Fault> {
        runtime::open(self.library.as_deref(), &self.dir)
    }
}

impl Backend for TensorFlow {
    type Model = TensorFlowModel;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[
            Platform { name: "tensorflow_graphdef", default_file: "model.graphdef" },
            Platform { name: "tensorflow_savedmodel", default_file: "model.savedmodel" },
        ],
        flags: backend_flags::PARALLEL_OPEN,
        ..BackendInfo::new("tensorflow", env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        log::send_to(context.log());
        Ok(Self {
            dir: PathBuf::from(context.dir()),
            library: context.setting(search::SETTING).map(str::to_owned),
        })
    }

    fn runtime(&self) -> String {
        match runtime::current() {
            Some(runtime) => format!("TensorFlow {}", runtime.version),
            // Not loaded until a model needs it, so that an idle server stays small.
            None => "TensorFlow".to_owned(),
        }
    }
}
