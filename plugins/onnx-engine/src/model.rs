//! A model version: its session, and the plan that configuration and graph agree on.

use crate::check::{Plan, Slot};
use crate::options::Options;
use crate::plugin::Graph;
use crate::runtime::Runtime;
use crate::session::Session;
use std::sync::atomic::AtomicBool;
use trtserver_framework::check;
use trtserver_framework::config::Config;
use trtserver_framework::fault::Fault;
use trtserver_framework::inputs::accepted;
use trtserver_framework::shape::MAX_RANK;
use trtserver_plugin_api::author::{Error, ModelContext, Scope};

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
    /// The shape in which the model takes an input of this type, shape and size.
    pub fn accepted<'a>(
        &self,
        slot: &Slot,
        kind: u32,
        given: &'a [i64],
        bytes: usize,
        buffer: &'a mut [i64; MAX_RANK],
    ) -> Result<&'a [i64], Fault> {
        accepted(&self.name, slot, self.plan.batching, kind, given, bytes, buffer)
    }

    /// `runtime` opens the library; it is called once the model's parameters are known to be valid.
    pub fn open(
        context: &ModelContext,
        config: Config,
        graph: &Graph,
        runtime: impl FnOnce() -> Result<&'static Runtime, Fault>,
    ) -> Result<Self, Error> {
        let place = || format!("unable to load model '{}'", config.model);
        let params = context.parameters();
        let params = params.iter().filter_map(|(key, value)| Some((key, value.text()?)));
        let threads = u32::try_from(context.threads()).unwrap_or(u32::MAX);
        let options = Options::new(threads, context.graph_level(), params)
            .map_err(|fault| fault.within(place()))?;
        let runtime = runtime()?;
        if context.log().progress("opening the session", 100) {
            return Err(Error::cancelled("the load was cancelled"));
        }
        let session = Session::open(runtime, graph, &options).map_err(|fault| {
            fault.within(format_args!("{} from {}", place(), graph.file.display()))
        })?;
        let plan = check::check(&config, &session.signature.tensors())?;
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

    /// Whether a run requires this input.
    pub fn requires(&self, slot: &Slot) -> bool {
        self.session.signature.inputs.iter().any(|input| input.c_name == slot.handle.c_name)
    }
}
