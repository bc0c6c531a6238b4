//! One version of a model: the plan, the library that runs it, and an engine for each device with
//! instances.

use crate::backend::TensorRt;
use crate::complete::max_batch;
use crate::driver;
use crate::engine::{Engine, Options};
use crate::instance::TensorRtInstance;
use crate::library::{self, Library};
use crate::plan_file::{self, Header};
use crate::plugin_libraries;
use crate::refit;
use crate::settings::{
    CudaOptions, HOST_CODE_PARAMETER, TensorRtSettings, VERSION_PARAMETER, WEIGHTS_PARAMETER,
};
use crate::tensors::{DeclaredTensor, TensorHandle};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use trtserver_framework::check::{ModelTensors, check_tensors};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files;
use trtserver_framework::slot::TensorPlan;
use trtserver_plugin_api::author::{Error, Model, ModelContext, Scope};

pub struct TensorRtModel {
    pub config: Config,
    pub cuda: CudaOptions,
    pub plan: PlanFile,
    scope: Scope,
    /// By CUDA ordinal. The lock is held while a plan is deserialized, so that the instances of a
    /// device share one engine.
    devices: Mutex<HashMap<i32, Arc<LoadedPlan>>>,
}

/// An engine, and what execution needs of its tensors.
pub struct LoadedPlan {
    pub engine: Arc<Engine>,
    pub plan: TensorPlan<TensorHandle>,
}

/// A plan, and how it is deserialized.
#[derive(Clone)]
pub struct PlanFile {
    pub path: PathBuf,
    header: Header,
    pub library: &'static Library,
    options: Options,
    weights: Option<PathBuf>,
}

impl PlanFile {
    /// Finds the library for the plan of a model.
    ///
    /// # Errors
    /// The file is not a plan, or there is no library for it; names the file and both versions.
    pub fn from_context(
        context: &ModelContext,
        settings: &TensorRtSettings,
    ) -> Result<PlanFile, PluginFault> {
        let path = model_files::in_version_dir(context, context.file())?;
        let weights = context.parameter(WEIGHTS_PARAMETER).filter(|name| !name.is_empty());
        let weights = weights.map(|name| model_files::in_version_dir(context, name)).transpose()?;
        let header = plan_file::read_header(&path)?;
        let within = |fault: PluginFault| {
            fault.within(format_args!("plan file '{}' ({})", path.display(), built_by(header)))
        };
        let parameter = context.parameter(VERSION_PARAMETER);
        let library = library_for(header, parameter, settings).map_err(within)?;
        plugin_libraries::load_all(library, settings)?;
        let allowed = match context.value(HOST_CODE_PARAMETER) {
            None => false,
            Some(value) => value.to_bool().ok_or_else(|| {
                PluginFault::invalid(format!(
                    "parameter '{HOST_CODE_PARAMETER}' must be true or false"
                ))
            })?,
        };
        Ok(PlanFile {
            header,
            library,
            options: Options { allow_host_code: allowed || settings.version_compatible },
            weights,
            path,
        })
    }

    /// An engine on a device, whose context is current.
    ///
    /// # Errors
    /// The library refuses the plan: names the file, both versions, and the device.
    pub fn deserialize(&self, scope: &Scope, device: i32) -> Result<Engine, PluginFault> {
        let bytes = std::fs::read(&self.path).map_err(|e| {
            PluginFault::invalid(format!("plan file '{}' cannot be read: {e}", self.path.display()))
        })?;
        let engine = Engine::deserialize(self.library, &bytes, scope, device, self.options);
        drop(bytes);
        let engine = engine.and_then(|engine| {
            refit::refit_weights(&engine, self.weights.as_deref())?;
            Ok(engine)
        });
        engine.map_err(|reason| self.refused(device, &reason))
    }

    fn refused(&self, device: i32, reason: &str) -> PluginFault {
        let way_out = if !self.options.allow_host_code && reason.contains("HostCode") {
            format!(
                "Set the parameter '{HOST_CODE_PARAMETER}' of the model to true if the code in the plan may run in the server"
            )
        } else {
            "A plan is for the version and the kind of GPU that built it; build it with this TensorRT on such a GPU"
                .to_owned()
        };
        let capability = driver::cuda_driver().map(|driver| driver.compute_capability(device));
        PluginFault::invalid(format!(
            "plan file '{}' ({}) cannot be used by TensorRT {} ({}) on GPU {device} (compute capability {}): {reason}\n\
             {way_out}",
            self.path.display(),
            built_by(self.header),
            self.library.version,
            self.library.origin,
            capability.unwrap_or_else(|_| "unknown".to_owned())
        ))
    }
}

/// For messages.
fn built_by(header: Header) -> String {
    match header {
        Header::Built(version) => format!("built by TensorRT {version}"),
        Header::Unknown { format: None } => "built by TensorRT 8.5 or older".to_owned(),
        Header::Unknown { format: Some(format) } => format!("of the unknown plan format {format}"),
    }
}

/// The library that a plan needs: by its header, else by the parameter, else the newest that there
/// is.
fn library_for(
    header: Header,
    parameter: Option<&str>,
    settings: &TensorRtSettings,
) -> Result<&'static Library, PluginFault> {
    let parameter = parameter.filter(|text| !text.is_empty()).map(|text| {
        let major = text.trim().split('.').next().and_then(|major| major.parse::<u32>().ok());
        major.ok_or_else(|| {
            PluginFault::invalid(format!(
                "parameter '{VERSION_PARAMETER}' must be a major version of TensorRT, not '{text}'"
            ))
        })
    });
    match (header.major(), parameter.transpose()?) {
        (Some(major), Some(asked)) if major != asked => Err(PluginFault::invalid(format!(
            "parameter '{VERSION_PARAMETER}' asks for TensorRT {asked}, but the plan needs TensorRT {major}"
        ))),
        (Some(major), _) | (None, Some(major)) => library::open_library(major, &settings.places),
        (None, None) => {
            let newest_first = library::known_majors().into_iter().rev();
            let found = newest_first
                .map(|major| library::open_library(major, &settings.places))
                .find_map(Result::ok);
            found.ok_or_else(|| {
                PluginFault::invalid(format!(
                    "the header does not say which TensorRT the plan needs, and no TensorRT {} was found in {}; set the \
                     parameter '{VERSION_PARAMETER}' of the model",
                    library::supported_versions(),
                    settings.places.text()
                ))
            })
        }
    }
}

impl Model for TensorRtModel {
    type Backend = TensorRt;
    type Instance = TensorRtInstance;

    fn open(backend: &Arc<TensorRt>, context: &ModelContext) -> Result<Self, Error> {
        let config = Config::from_context(context);
        config.refuse_ragged("tensorrt")?;
        let within = |fault: PluginFault| fault.within(format_args!("model '{}'", config.model));
        if let Some(accelerator) = config.facts.accelerators.first() {
            return Err(Error::unsupported(format_args!(
                "{} '{}' requested for model '{}': a TensorRT plan is executed as it was built",
                accelerator.field(),
                accelerator.name,
                config.model
            )));
        }
        let plan = PlanFile::from_context(context, &backend.settings).map_err(within)?;
        Ok(TensorRtModel {
            cuda: CudaOptions::read(context.config_pb()),
            plan,
            scope: context.log().clone(),
            devices: Mutex::default(),
            config,
        })
    }
}

impl TensorRtModel {
    /// The engine on a device, whose context is current.
    ///
    /// # Errors
    /// The plan cannot be used there, or does not agree with the configuration.
    pub fn loaded(&self, device: i32) -> Result<Arc<LoadedPlan>, PluginFault> {
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = devices.get(&device) {
            return Ok(Arc::clone(loaded));
        }
        let within =
            |fault: PluginFault| fault.within(format_args!("model '{}'", self.config.model));
        let engine = self.plan.deserialize(&self.scope, device).map_err(within)?;
        let loaded = self.checked(Arc::new(engine))?;
        devices.insert(device, Arc::clone(&loaded));
        Ok(loaded)
    }

    fn checked(&self, engine: Arc<Engine>) -> Result<Arc<LoadedPlan>, PluginFault> {
        let config = &self.config;
        let (implicit, batches) = (engine.implicit_batch.is_some(), config.max_batch_size > 0);
        self.check_shape_tensors(&engine)?;
        let declared = |is_input| {
            let tensors = engine.tensors.iter().filter(|tensor| tensor.is_input == is_input);
            tensors.map(|t| DeclaredTensor::new(t, implicit, batches)).collect::<Vec<_>>()
        };
        let (inputs, outputs) = (declared(true), declared(false));
        let tensors = ModelTensors { inputs: &inputs, defaulted: &[], outputs: &outputs };
        let plan = check_tensors(config, &tensors)?;
        Ok(Arc::new(LoadedPlan { engine, plan }))
    }

    /// # Errors
    /// No profile of an instance allows the largest batch of the configuration.
    pub fn check_max_batch(&self, engine: &Engine, profiles: &[usize]) -> Result<(), PluginFault> {
        let configured = self.config.max_batch_size;
        let max = match engine.implicit_batch {
            Some(max) => Some(max),
            None => profiles.iter().filter_map(|profile| max_batch(engine, *profile)).max(),
        };
        match max.filter(|max| configured > *max) {
            None => Ok(()),
            Some(max) => Err(PluginFault::invalid(format!(
                "unexpected configuration maximum batch size {configured} for '{}', model maximum is {max} (plan file \
                 '{}')",
                self.config.model,
                self.plan.path.display()
            ))),
        }
    }

    /// Shape tensors are marked in the configuration: the host sends their values in CPU memory,
    /// and without batch dimension.
    fn check_shape_tensors(&self, engine: &Engine) -> Result<(), PluginFault> {
        let declared = self.config.inputs.iter().chain(&self.config.outputs);
        for decl in declared {
            let Some(tensor) = engine.tensors.iter().find(|tensor| tensor.name == decl.name) else {
                continue;
            };
            if tensor.is_shape != decl.shape_tensor {
                let (is, says) =
                    if tensor.is_shape { ("a", "does not say") } else { ("no", "says") };
                return Err(PluginFault::invalid(format!(
                    "model '{}', tensor '{}': the engine has {is} shape tensor of this name, the model configuration \
                     {says} is_shape_tensor",
                    self.config.model, decl.name
                )));
            }
        }
        Ok(())
    }
}
