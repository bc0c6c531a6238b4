//! Executes batches: several requests in one run where their shapes agree (see `merge.rs`), else
//! each request by itself.
//!
//! Inputs are used in place, outputs are adopted by the host; strings are read in place and written
//! once. A model that may keep a tensor between runs (see `state.rs`) gets copies. Per-request data
//! is in vectors that keep their capacity.

use crate::api::{TfOutput, TfTensor};
use crate::model::TensorFlowModel;
use crate::network::GraphNetwork;
use crate::status::Status;
use crate::tensor::{Borrow, OwnedTensor};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trtserver_framework::execute::{self, Executor};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::{InputBlocks, InputClaims};
use trtserver_plugin_api::author::{
    AnyThread, Batch, Error, Instance, InstanceContext, Kind, Request,
};

pub struct TensorFlowInstance {
    pub model: Arc<TensorFlowModel>,
    pub network: Arc<GraphNetwork>,
    pub scratch: RunScratch,
}

pub struct RunScratch {
    /// The tensors that are fed, and their values; freed after each request.
    pub inputs: Vec<TfOutput>,
    pub values: Vec<OwnedTensor>,
    pub raw_values: Vec<*mut TfTensor>,
    pub outputs: Vec<TfOutput>,
    /// The results of a run that have not been passed on.
    pub results: Vec<*mut TfTensor>,
    /// Position of each requested output in the plan.
    pub requested: Vec<usize>,
    pub claims: InputClaims,
    /// For inputs that are in several parts or must be copied, and for strings.
    pub blocks: InputBlocks,
    /// Addresses of input memory that is not TensorFlow's.
    pub borrowed: Vec<Range<usize>>,
    pub borrow: Borrow,
    pub status: Status,
    /// Which requests of the batch have failed.
    pub failed: Vec<bool>,
}

// SAFETY: TensorFlow allows using sessions and tensors on any thread; pointers in the scratch space
// are used during one call only.
unsafe impl Send for TensorFlowInstance {}

impl Instance for TensorFlowInstance {
    type Model = TensorFlowModel;
    // Large operations run on the session's own threads.
    const ANY_THREAD: AnyThread<Self> = AnyThread::YES;

    fn open(model: &Arc<TensorFlowModel>, context: &InstanceContext) -> Result<Self, Error> {
        let network = model.network_for(context)?;
        if context.kind() == Kind::Gpu && !network.session.has_gpu() {
            return Err(Error::unsupported(format_args!(
                "instance '{}' of model '{}' is of KIND_GPU, but TensorFlow {} from {} has no GPU: its \
                 devices are {}",
                context.name(),
                model.name,
                network.session.runtime.version,
                network.session.runtime.origin,
                network.session.device_types().join(", ")
            )));
        }
        let status = Status::new(network.session.runtime);
        Ok(Self { model: model.clone(), network, scratch: RunScratch::new(status) })
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        execute::execute_batch(self, batch)
    }
}

impl Executor for TensorFlowInstance {
    fn failed(&mut self) -> &mut Vec<bool> {
        &mut self.scratch.failed
    }

    fn whole_batch(&self) -> bool {
        self.model.plan.whole_batch
    }

    fn can_merge(&self) -> bool {
        self.model.plan.batching && !self.model.unmergeable.load(Ordering::Relaxed)
    }

    fn prepare_merged(&mut self, batch: &Batch<'_>) -> Result<bool, PluginFault> {
        self.scratch.prepare_merged(&self.model, &self.network, batch)?;
        Ok(!self.scratch.requested.is_empty())
    }

    fn run_merged(&mut self, batch: &Batch<'_>) -> Result<Option<PluginFault>, PluginFault> {
        self.scratch.run_merged(&self.model, &self.network, batch)
    }

    fn clear(&mut self) {
        self.scratch.clear(&self.model);
    }

    fn execute_one(
        &mut self,
        request: Request<'_>,
        batch: &Batch<'_>,
        computing: &mut bool,
    ) -> Result<(), PluginFault> {
        let (model, network, scratch) = (&*self.model, &*self.network, &mut self.scratch);
        scratch.prepare_inputs(model, network, request)?;
        scratch.add_requested(model, network, request.requested_outputs())?;
        if !std::mem::replace(computing, true) {
            batch.mark_compute_start();
        }
        let ran = scratch.run(network);
        batch.mark_compute_end();
        ran.map_err(|fault| fault.within(format_args!("model '{}'", model.name)))?;
        let mut response = request.new_response().map_err(PluginFault::from)?;
        scratch.pass_outputs(model, request.batch_size(), &mut response)?;
        response.send().map_err(PluginFault::from)
    }
}

impl RunScratch {
    fn new(status: Status) -> Self {
        Self {
            inputs: Vec::new(),
            values: Vec::new(),
            raw_values: Vec::new(),
            outputs: Vec::new(),
            results: Vec::new(),
            requested: Vec::new(),
            claims: InputClaims::default(),
            blocks: InputBlocks::default(),
            borrowed: Vec::new(),
            borrow: Borrow::default(),
            status,
            failed: Vec::new(),
        }
    }

    pub fn run(&mut self, network: &GraphNetwork) -> Result<(), PluginFault> {
        // TensorFlow rejects a run without outputs.
        if self.outputs.is_empty() {
            return Ok(());
        }
        self.results.clear();
        self.results.resize(self.outputs.len(), ptr::null_mut());
        let (inputs, values) = (&self.inputs, &self.raw_values);
        // SAFETY: the tensors belong to the network's session; the values live in this scratch.
        unsafe {
            network.session.run(inputs, values, &self.outputs, &mut self.results, &mut self.status)
        }
    }

    /// Frees what belongs to one run.
    pub fn clear(&mut self, model: &TensorFlowModel) {
        // Results that were not passed on: only after an error.
        for raw in self.results.drain(..).filter(|raw| !raw.is_null()) {
            // SAFETY: a result of the run that was not passed on.
            drop(unsafe { OwnedTensor::from_raw(model.runtime, raw) });
        }
        self.inputs.clear();
        self.values.clear();
        self.raw_values.clear();
        self.outputs.clear();
        self.requested.clear();
        self.borrowed.clear();
        if !self.borrow.is_over() {
            // The analysis in `state.rs` is meant to prevent this. The memory belongs to the
            // request, so it is invalid soon; no later request shares it.
            model.copy_from_now_on();
            self.borrow = Borrow::default();
        }
        self.blocks.trim();
    }
}
