//! An instance: an execution context for each of its optimisation profiles, on the compute stream
//! of its device.

use crate::buffers::RunBuffers;
use crate::callbacks::outputs::OutputAllocator;
use crate::context::ExecutionContext;
use crate::graphs::GraphCache;
use crate::model::{LoadedPlan, TensorRtModel};
use crate::profile::{Range, selected_profiles};
use crate::vtable::TensorShape;
use std::sync::Arc;
use trtserver_framework::execute::fail_if_cancelled;
use trtserver_plugin_api::author::{Batch, Code, Device, Error, Instance, InstanceContext, Scope};

pub struct TensorRtInstance {
    /// Before the engine, which they hold.
    pub contexts: Vec<ProfileContext>,
    pub graphs: GraphCache,
    pub buffers: RunBuffers,
    pub model: Arc<TensorRtModel>,
    pub loaded: Arc<LoadedPlan>,
    pub device: Device,
    pub scope: Scope,
    /// An output is a shape tensor, which cannot be split among requests.
    single: bool,
    /// Which requests of the batch are cancelled.
    cancelled: Vec<bool>,
}

/// An execution context with one profile.
pub struct ProfileContext {
    pub context: ExecutionContext,
    pub profile: usize,
    /// In the order of the plan's inputs.
    pub ranges: Vec<Range>,
    /// The shapes that were set last, in the same order.
    pub set: Vec<Option<TensorShape>>,
    /// Shapes of the plan's outputs for these inputs; `None` where only the run decides.
    pub outputs: Vec<Option<TensorShape>>,
    /// Allocators of the outputs whose shape was ever decided by a run. Boxed: TensorRT keeps their
    /// addresses.
    pub allocators: Vec<Option<Box<OutputAllocator>>>,
}

impl Instance for TensorRtInstance {
    type Model = TensorRtModel;

    fn open(model: &Arc<TensorRtModel>, context: &InstanceContext) -> Result<Self, Error> {
        let name = &model.config.model;
        let device = context.device().ok_or_else(|| {
            Error::unavailable(format_args!(
                "instance '{}' of model '{name}' has no GPU; TensorRT plans need one (KIND_GPU)",
                context.name()
            ))
        })?;
        let loaded = model.loaded(device.id())?;
        let engine = &loaded.engine;
        let refuse = |reason: String| {
            Error::invalid(format_args!(
                "instance '{}' of model '{name}', plan file '{}': {reason}",
                context.name(),
                model.plan.path.display()
            ))
        };
        let available = engine.profiles.len().max(1);
        let profiles = selected_profiles(context.profiles(), available).map_err(refuse)?;
        model.check_max_batch(engine, &profiles)?;
        let contexts: Result<Vec<_>, _> = profiles
            .into_iter()
            .map(|profile| ProfileContext::new(&loaded, &device, profile).map_err(refuse))
            .collect();
        let contexts = contexts?;
        let (graphs, why_not) = GraphCache::new(&model.cuda, &loaded);
        if let Some(reason) = why_not {
            context.log().warning(format_args!(
                "instance '{}' of model '{name}' runs without CUDA graphs: {reason}",
                context.name()
            ));
        }
        let scope = context.log().clone();
        let buffers = RunBuffers::new(&loaded, &device, &scope)?;
        let single = loaded.plan.outputs.iter().any(|output| output.handle.is_shape);
        let model = Arc::clone(model);
        let cancelled = Vec::new();
        let mut instance =
            Self { contexts, graphs, buffers, model, loaded, device, scope, single, cancelled };
        instance.capture_listed();
        Ok(instance)
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        self.cancelled.clear();
        self.cancelled.extend(batch.requests().map(fail_if_cancelled));
        if !self.cancelled.contains(&false) {
            return Ok(());
        }
        let merged = batch.len() == 1 || self.loaded.plan.batching && !self.single;
        if merged {
            match self.run_batch(batch) {
                Ok(()) => return Ok(()),
                // An invalid request must not fail the others.
                Err(failed) if failed.is_input() && batch.len() > 1 => {}
                Err(failed) => return Err(self.error(failed.into_error())),
            }
        }
        for (nth, request) in batch.requests().enumerate() {
            if self.cancelled[nth] {
                continue;
            }
            if let Err(failed) = self.run_request(request) {
                request.fail(self.error(failed.into_error()));
            }
        }
        Ok(())
    }
}

impl TensorRtInstance {
    /// Asks the host whether the device survived an error of a run.
    fn error(&self, error: Error) -> Error {
        if error.code() != Code::Internal {
            return error;
        }
        match self.device.fault(error.text()) {
            // The host takes the instance out of service by itself.
            Ok(true) => Error::device_lost(error),
            _ => error,
        }
    }
}

impl ProfileContext {
    fn new(loaded: &Arc<LoadedPlan>, device: &Device, profile: usize) -> Result<Self, String> {
        let (engine, plan) = (&loaded.engine, &loaded.plan);
        let context = ExecutionContext::new(engine, device, profile)?;
        let ranges = plan.inputs.iter().map(|input| {
            let range = engine.profiles.get(profile).and_then(|p| p.range(&input.name)).cloned();
            range.ok_or_else(|| format!("profile {profile} has no range of input '{}'", input.name))
        });
        Ok(Self {
            ranges: ranges.collect::<Result<_, _>>()?,
            set: vec![None; plan.inputs.len()],
            outputs: vec![None; plan.outputs.len()],
            allocators: plan.outputs.iter().map(|_| None).collect(),
            context,
            profile,
        })
    }

    /// The shape of an output of a run of `rows` rows, once those of the inputs are set; `None`
    /// where only the run decides.
    pub fn output_shape(
        &self,
        loaded: &LoadedPlan,
        nth: usize,
        rows: Option<usize>,
    ) -> Option<TensorShape> {
        match loaded.engine.implicit_batch {
            Some(_) => {
                TensorShape::new(&loaded.plan.outputs[nth].dims).map(|shape| shape.with_rows(rows))
            }
            None => self.outputs[nth],
        }
    }
}
