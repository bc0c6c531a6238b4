//! A model version: its package, and the plan that configuration and package agree on.

use crate::backend::PyTorch;
use crate::declared::{RunTensor, expect_batch, unchecked_sizes};
use crate::execute::PyTorchInstance;
use crate::loaded::LoadedPackage;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::slot::TensorPlan;
use trtserver_plugin_api::author::{Error, Model, ModelContext, Scope, Value};

/// What the instances of a version share.
pub struct PyTorchModel {
    pub name: String,
    pub package: Arc<LoadedPackage>,
    pub plan: TensorPlan<RunTensor>,
    /// An output of a run has not as many rows as the run: requests are executed one by one.
    pub unmergeable: AtomicBool,
    /// Threads of a run; `None`: as many as the server grants an instance.
    pub threads: Option<usize>,
    log: Scope,
}

/// Parameters of Triton's backend that tune its own code.
const UNUSED: [&str; 6] = [
    "CACHE_CLEANING_ENABLED",
    "DISABLE_CUDNN",
    "DISABLE_OPTIMIZED_EXECUTION",
    "ENABLE_WEIGHT_SHARING",
    "INFERENCE_MODE",
    "INTER_OP_THREAD_COUNT",
];

/// Parameter of Triton's backend: threads of a run. There it is one number for the process.
const THREADS: &str = "INTRA_OP_THREAD_COUNT";

/// Parameter of Triton's backend: a library of the user that runs before the model is opened.
const INIT_LIBRARY: &str = "MODEL_INIT_LIBRARY";

impl Model for PyTorchModel {
    type Backend = PyTorch;
    type Instance = PyTorchInstance;

    fn open(backend: &Arc<PyTorch>, context: &ModelContext) -> Result<Self, Error> {
        let config = Config::from_context(context);
        config.refuse_ragged(crate::BACKEND)?;
        if context.parameter(INIT_LIBRARY).is_some_and(|path| !path.is_empty()) {
            return Err(Error::unsupported(format_args!(
                "unable to load model '{}': parameter {INIT_LIBRARY} is not supported",
                config.model
            )));
        }
        for name in UNUSED.into_iter().filter(|name| context.value(name).is_some()) {
            context.log().info(format_args!(
                "model '{}': parameter {name} has no effect: it tunes another implementation of this backend",
                config.model
            ));
        }
        let threads = read_threads(context.value(THREADS)).map_err(|fault| {
            fault.within(format_args!("unable to load model '{}'", config.model))
        })?;
        let package = match context.state::<Arc<LoadedPackage>>() {
            // It was opened for the completion.
            Some(package) => Arc::clone(package),
            None => Arc::new(LoadedPackage::open(backend, context, &config)?),
        };
        let mut signature = package.signature.clone();
        signature.adopt_numbered_names(&config);
        let plan = signature.plan(&config)?;
        expect_batch(&config, package.code.as_deref().unwrap_or_default())?;
        let note = match &package.code {
            Some(_) => unchecked_sizes(&package.links, &signature),
            None => Some(
                "the package lacks the generated code, so nothing but the configuration says which shapes the compiled \
                 model takes: it reads beyond inputs that are smaller"
                    .to_owned(),
            ),
        };
        if let Some(note) = note {
            context.log().warning(format_args!("model '{}': {note}", config.model));
        }
        Ok(Self {
            name: config.model,
            package,
            plan,
            unmergeable: AtomicBool::new(false),
            threads,
            log: context.log().clone(),
        })
    }
}

/// # Errors
/// Names the parameter, its value and what was expected.
fn read_threads(value: Option<Value<'_>>) -> Result<Option<usize>, PluginFault> {
    let Some(value) = value else { return Ok(None) };
    let number =
        value.text().and_then(|text| text.trim().parse::<i32>().ok()).ok_or_else(|| {
            PluginFault::invalid(format!("parameter '{THREADS}' is {value}, expected a number"))
        })?;
    // As in Triton: other numbers stand for the default.
    Ok(usize::try_from(number).ok().filter(|threads| *threads > 0))
}

impl PyTorchModel {
    /// Outputs of a merged run cannot be divided among the requests.
    pub fn stop_merging(&self, fault: &PluginFault) {
        if !self.unmergeable.swap(true, Ordering::Relaxed) {
            self.log.warning(format_args!("{fault}; requests are executed one by one from now on"));
        }
    }
}
