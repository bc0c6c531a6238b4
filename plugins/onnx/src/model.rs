//! A model version: its file, its session, and the plan that configuration and file agree on.

use crate::backend::Onnx;
use crate::check::{self, Plan, Slot};
use crate::execute::OnnxInstance;
use crate::options::Options;
use crate::session::Session;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use trtserver_framework::config::Config;
use trtserver_framework::fault::Fault;
use trtserver_plugin_api::author::{Error, Model, ModelContext, Scope};

pub struct OnnxModel {
    pub name: String,
    pub session: Session,
    pub plan: Plan,
    /// Whether outputs with a fixed shape are written into blocks of the host. Set to false when a run shows that the
    /// file declares a wrong shape.
    pub preallocate: AtomicBool,
    pub log: Scope,
}

impl OnnxModel {
    /// Whether a run requires this input.
    pub fn requires(&self, slot: &Slot) -> bool {
        self.session.signature.inputs.iter().any(|input| input.c_name == slot.handle.c_name)
    }
}

impl Model for OnnxModel {
    type Backend = Onnx;
    type Instance = OnnxInstance;

    fn open(backend: &Arc<Onnx>, context: &ModelContext) -> Result<Self, Error> {
        let config = Config::of(context);
        let place = || format!("unable to load model '{}'", config.model);
        if let Some(name) = config.facts.accelerators.first() {
            return Err(Error::unsupported(format_args!(
                "unknown execution accelerator '{name}' requested for model '{}': this plugin runs \
                 ONNX models on the CPU by ONNX Runtime's own kernels and offers no accelerators",
                config.model
            )));
        }
        let file = file_of(context)?;
        let params = context.parameters();
        let params = params.iter().filter_map(|(key, value)| Some((key, value.text()?)));
        let threads = u32::try_from(context.threads()).unwrap_or(u32::MAX);
        let options = Options::new(threads, context.graph_level(), params)
            .map_err(|fault| fault.within(place()))?;
        let runtime = backend.runtime_library()?;
        if context.log().progress("opening the session", 100) {
            return Err(Error::cancelled("the load was cancelled"));
        }
        let session = Session::open(runtime, &file, &options)
            .map_err(|fault| fault.within(format_args!("{} from {}", place(), file.display())))?;
        let plan = check::check(&config, &session.signature)?;
        context.log().verbose(format_args!(
            "model '{}': {} inputs, {} outputs, {} threads, ONNX Runtime {}",
            config.model,
            plan.inputs.len(),
            plan.outputs.len(),
            options.intra_threads,
            runtime.version
        ));
        Ok(Self {
            name: config.model,
            session,
            plan,
            preallocate: AtomicBool::new(true),
            log: context.log().clone(),
        })
    }
}

/// The model's file. A directory holds it under the default name.
pub fn file_of(context: &ModelContext) -> Result<PathBuf, Fault> {
    let name = if context.file().is_empty() { crate::DEFAULT_FILE } else { context.file() };
    let mut path = PathBuf::from(context.version_dir()).join(name);
    if path.is_dir() {
        path.push(crate::DEFAULT_FILE);
    }
    if path.is_file() {
        return Ok(path);
    }
    Err(Fault::internal(format!(
        "unable to find ONNX model '{name}' for {}: there is no file {}",
        context.name(),
        path.display()
    )))
}
