//! A model version: its file, its session, and the plan that configuration and file agree on.

use crate::accelerator;
use crate::backend::TensorFlow;
use crate::check;
use crate::execute::TensorFlowInstance;
use crate::file::{ModelFile, ModelSource};
use crate::graph_names;
use crate::kernels;
use crate::network::{GraphNetwork, complete_from_graph};
use crate::plan::TensorPlan;
use crate::runtime::TensorFlowRuntime;
use crate::saved_model::{self, SignatureSelection};
use crate::session::{self, GraphSession};
use crate::session_config::SessionConfig;
use crate::state;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files;
use trtserver_plugin_api::author::{Error, InstanceContext, Model, ModelContext, Scope};

/// Parameter: whether each instance has a session of its own.
pub const SESSION_PARAMETER: &str = "TF_SESSION_PER_INSTANCE";

/// Triton's parameter: how many instances share a session.
const SHARE_COUNT: &str = "MAX_SESSION_SHARE_COUNT";

pub struct TensorFlowModel {
    pub name: String,
    pub runtime: &'static TensorFlowRuntime,
    pub plan: TensorPlan,
    /// Runs keep tensors or change state.
    pub has_state: bool,
    /// Inputs and outputs are copied. Set when a run has kept an input unexpectedly.
    copies: AtomicBool,
    copies_strings: bool,
    /// An output of a run has not as many rows as the run: requests are executed one by one.
    pub unmergeable: AtomicBool,
    source: ModelSource,
    config: session::Config,
    share: bool,
    /// The first session: of all instances, or of the first.
    network: Option<Arc<GraphNetwork>>,
    network_taken: AtomicBool,
    pub log: Scope,
}

impl Model for TensorFlowModel {
    type Backend = TensorFlow;
    type Instance = TensorFlowInstance;

    fn open(backend: &Arc<TensorFlow>, context: &ModelContext) -> Result<Self, Error> {
        let config = Config::from_context(context);
        let place = || format!("unable to load model '{}'", config.model);
        let params: Vec<(&str, &str)> = context
            .parameters()
            .iter()
            .filter_map(|(key, value)| Some((key, value.text()?)))
            .collect();
        let settings = context.settings();
        let settings = settings.iter().filter_map(|(key, value)| Some((key, value.text()?)));
        let options = SessionConfig::new(
            context.threads(),
            context.graph_level(),
            settings,
            params.iter().copied(),
        )
        .map_err(|fault| fault.within(place()))?;
        let per_instance = session_per_instance(context.parameter(SESSION_PARAMETER))
            .map_err(|fault| fault.within(place()))?;
        if context.parameter(SHARE_COUNT).is_some() {
            context.log().warning(format_args!(
                "model '{}': parameter {SHARE_COUNT} is ignored: all instances share a session or none do, \
                 as {SESSION_PARAMETER} says",
                config.model
            ));
        }
        let file = ModelFile::from_context(context, &config)?;
        let selection = SignatureSelection::new(params.iter().copied());
        let read = file.read(&config, &selection, graph_names::configured_signature)?;
        let runtime = backend.runtime_library(context)?;
        load_operators(runtime, context, &config)?;
        if context.log().progress("opening the session", 100) {
            return Err(Error::cancelled("the load was cancelled"));
        }
        let mut session_config =
            session::Config { encoded: options.encode(), in_caller: options.inter_threads == 1 };
        let open = |config: &session::Config| {
            read.source.open(runtime, config).map_err(|fault| {
                fault.within(format_args!("{} from {}", place(), file.path.display()))
            })
        };
        let (mut session, meta_graph) = open(&session_config)?;
        if let Some(addition) = accelerator::config_addition(&config, &session, context.log())? {
            session_config.encoded.extend(addition);
            (session, _) = open(&session_config)?;
        }
        let mut signature = match read.signature {
            Some(signature) => signature,
            None => {
                saved_model::read_meta_graph(&meta_graph, &selection, &config.model, &file.path)?
                    .signature
            }
        };
        complete_from_graph(&mut signature, &session);
        if !file.is_saved_model {
            for note in check::prefer_configured_shapes(&config, &mut signature) {
                context.log().warning(format_args!("model '{}': {note}", config.model));
            }
        }
        let plan = check::check_signature(&config, &signature)?;
        let network = GraphNetwork::new(session, &plan, &config.model, &file.path)?;
        let outputs: Vec<&str> =
            plan.outputs.iter().map(|slot| slot.handle.operation.as_str()).collect();
        let graph = match &read.source {
            ModelSource::GraphDef { graph, .. } => Ok(&graph[..]),
            ModelSource::SavedModel { .. } => state::find_graph_def(&meta_graph),
        };
        let found = graph
            .clone()
            .and_then(|graph| runtime.find_state(graph, &outputs))
            .map_err(|why| PluginFault::internal(format!("{}: {why}", place())))?;
        expect_kernels(&network.session, graph.unwrap_or_default(), &config, &plan).map_err(
            |fault| fault.within(format_args!("{} from {}", place(), file.path.display())),
        )?;
        let has_state = !found.keeping.is_empty();
        let model = Self {
            name: config.model,
            runtime,
            plan,
            has_state,
            copies: AtomicBool::new(has_state),
            copies_strings: has_state || found.needs_nul,
            unmergeable: AtomicBool::new(false),
            source: read.source,
            config: session_config,
            share: !per_instance.unwrap_or(has_state),
            network: Some(Arc::new(network)),
            network_taken: AtomicBool::new(false),
            log: context.log().clone(),
        };
        context.log().verbose(format_args!(
            "model '{}': {} inputs, {} outputs, {} threads, {}, TensorFlow {}",
            model.name,
            model.plan.inputs.len(),
            model.plan.outputs.len(),
            options.intra_threads,
            match has_state {
                true => format!("state kept by {}", found.keeping.join(", ")),
                false => "no state".to_owned(),
            },
            runtime.version
        ));
        Ok(model)
    }
}

impl TensorFlowModel {
    /// The session of an instance.
    pub fn network_for(&self, context: &InstanceContext) -> Result<Arc<GraphNetwork>, PluginFault> {
        let first = !self.network_taken.swap(true, Ordering::Relaxed);
        if let Some(network) = self.network.as_ref().filter(|_| self.share || first) {
            return Ok(network.clone());
        }
        let place = || format!("unable to open instance '{}'", context.name());
        let (session, _) =
            self.source.open(self.runtime, &self.config).map_err(|fault| fault.within(place()))?;
        Ok(Arc::new(GraphNetwork::new(session, &self.plan, &self.name, Path::new(context.name()))?))
    }

    /// An output has not the rows of its run.
    pub fn stop_merging(&self, fault: &PluginFault) {
        if !self.unmergeable.swap(true, Ordering::Relaxed) {
            self.log.warning(format_args!("{fault}; requests are executed one by one from now on"));
        }
    }

    pub fn copies(&self) -> bool {
        self.copies.load(Ordering::Relaxed)
    }

    pub fn copies_strings(&self) -> bool {
        self.copies_strings || self.copies()
    }

    pub fn copy_from_now_on(&self) {
        if !self.copies.swap(true, Ordering::Relaxed) {
            self.log.error(format_args!(
                "model '{}': TensorFlow keeps the memory of an input after the request, although none of the \
                 model's operations is known to do so; inputs are copied from now on",
                self.name
            ));
        }
    }
}

impl Drop for TensorFlowModel {
    fn drop(&mut self) {
        let before = resident_mib();
        self.network = None;
        if let (Some(before), Some(after)) = (before, resident_mib()) {
            self.log.info(format_args!(
                "model '{}' closed its session: {before} MiB resident before, {after} MiB after, of which the \
                 TensorFlow library keeps what it has loaded and cached; isolation=process returns all",
                self.name
            ));
        }
    }
}

/// Libraries of custom operations: `op-libraries` of the backend, separated by `;`, and
/// `model_operations` of the model, whose paths are relative to the model's directory.
pub fn load_operators(
    runtime: &'static TensorFlowRuntime,
    context: &ModelContext,
    config: &Config,
) -> Result<(), PluginFault> {
    let of_backend = context.setting("op-libraries").unwrap_or_default();
    let of_backend = of_backend.split(';').map(str::trim).filter(|path| !path.is_empty());
    let (places, dir) = (model_files::file_places(context), Path::new(context.dir()));
    let of_model = config.facts.operator_libraries.iter().map(|name| {
        places.resolve(dir, name).map_err(|refusal| {
            model_files::file_refused(&config.model, &refusal)
                .within("library of custom operations")
        })
    });
    for path in of_backend.map(|path| Ok(PathBuf::from(path))).chain(of_model) {
        let path = path?;
        runtime.load_operators(&path).map_err(|fault| {
            let (model, path) = (&config.model, path.display());
            fault.within(format_args!(
                "unable to load model '{model}': library of custom operations {path}"
            ))
        })?;
    }
    Ok(())
}

/// Configured outputs must not need an operation that the library cannot execute.
fn expect_kernels(
    session: &GraphSession,
    graph: &[u8],
    config: &Config,
    plan: &TensorPlan,
) -> Result<(), PluginFault> {
    let fed: HashSet<&str> =
        plan.inputs.iter().map(|slot| slot.handle.operation.as_str()).collect();
    let is_configured = |name: &str| config.outputs.iter().any(|output| output.name == name);
    let outputs: Vec<&str> = plan
        .outputs
        .iter()
        .filter(|slot| is_configured(&slot.name))
        .map(|slot| slot.handle.operation.as_str())
        .collect();
    let (runtime, devices) = (session.runtime, session.device_types());
    let missing = kernels::find_missing(graph, &outputs, &fed, &devices, |kind| {
        runtime.registered_kernels(kind)
    })
    .map_err(|why| PluginFault::internal(why.to_string()))?;
    match missing {
        None => Ok(()),
        Some(missing) => Err(PluginFault::unsupported(format!(
            "TensorFlow {} has {missing} on {}",
            runtime.version,
            devices.join(", ")
        ))),
    }
}

fn session_per_instance(value: Option<&str>) -> Result<Option<bool>, PluginFault> {
    match value.map(str::trim) {
        None | Some("") => Ok(None),
        Some("true" | "1") => Ok(Some(true)),
        Some("false" | "0") => Ok(Some(false)),
        Some(other) => Err(PluginFault::invalid(format!(
            "parameter '{SESSION_PARAMETER}' must be true or false, not '{other}'"
        ))),
    }
}

/// Memory of this process that is in RAM.
fn resident_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib / 1024)
}
