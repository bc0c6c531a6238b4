//! The backend `tensorrt`: cheap to open, libraries are loaded with the first model of their major
//! version.

use crate::complete;
use crate::driver;
use crate::engine::Engine;
use crate::library;
use crate::model::{PlanFile, TensorRtModel};
use crate::settings::{TensorRtSettings, first_gpu};
use std::path::Path;
use trtserver_framework::complete::is_needed;
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::log;
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::abi::types::memory_type;
use trtserver_plugin_api::author::{
    Backend, BackendContext, BackendInfo, Completion, ConfigPatch, Error, Kind, ModelContext,
    Platform,
};

const CPU_AND_GPU: u32 = 1 << memory_type::CPU | 1 << memory_type::GPU;

pub struct TensorRt {
    pub settings: TensorRtSettings,
}

impl TensorRt {
    fn completed(
        &self,
        context: &ModelContext,
        config: &Config,
    ) -> Result<Completion, PluginFault> {
        let plan = PlanFile::from_context(context, &self.settings)?;
        let device = first_gpu(context.config_pb());
        let driver = driver::cuda_driver().map_err(|reason| {
            PluginFault::unavailable(format!(
                "the tensors of plan file '{}' are read on a GPU: {reason}",
                plan.path.display()
            ))
        })?;
        let read = || -> Result<(Option<String>, Engine), PluginFault> {
            let engine = plan.deserialize(context.log(), device)?;
            Ok((
                complete::config_patch(config, &complete::OfferedTensors::from_engine(&engine))?,
                engine,
            ))
        };
        // The scope of this call ends with it, and with it the memory of the engine: instances read
        // the plan again.
        let (patch, _engine) =
            driver.on_device(device, read).map_err(PluginFault::unavailable)??;
        Ok(patch.map(ConfigPatch::Text).into())
    }
}

impl Backend for TensorRt {
    type Model = TensorRtModel;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: "tensorrt_plan", default_file: "model.plan" }],
        // Accelerators are refused by `Model::open`, with the reason.
        flags: backend_flags::ACCELERATORS
            | backend_flags::PROFILES
            | backend_flags::SHAPE_TENSORS
            | backend_flags::NON_LINEAR_IO
            | backend_flags::LISTS_FIELDS
            | backend_flags::CUDA_GRAPHS,
        // Work is queued while the batch before is still executed.
        max_in_flight: 2,
        align: 64,
        input_memory_types: CPU_AND_GPU,
        output_memory_types: CPU_AND_GPU,
        instance_kinds: &[Kind::Gpu],
        ..BackendInfo::new("tensorrt", env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        log::send_to(context.log());
        let settings = TensorRtSettings::new(|key| context.setting(key), Path::new(context.dir()))?;
        context.log().verbose(format_args!(
            "TensorRT plans are unproven on the real library: execution was tested with a test double only; libraries are \
             searched in {}",
            settings.places.text()
        ));
        Ok(TensorRt { settings })
    }

    fn runtime(&self) -> String {
        let opened = library::opened_libraries();
        if opened.is_empty() {
            // Not loaded until a model needs it, so that an idle server stays small.
            return "TensorRT".to_owned();
        }
        let versions: Vec<String> =
            opened.iter().map(|library| library.version.to_string()).collect();
        format!("TensorRT {}", versions.join(", "))
    }

    fn autocomplete(&self, context: &ModelContext) -> Result<Completion, Error> {
        let config = Config::from_context(context);
        if !is_needed(&config) {
            return Ok(Completion::default());
        }
        Ok(self.completed(context, &config).map_err(|fault| {
            fault.within(format_args!("autofill failed for model '{}'", config.model))
        })?)
    }
}
