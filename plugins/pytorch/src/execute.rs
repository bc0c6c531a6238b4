//! Executes batches: several requests in one run where their shapes agree, else each request by
//! itself.
//!
//! Inputs are used in place unless the model writes to them; outputs are copied into the host's
//! blocks, since they may share memory with inputs or with the model's weights. Per-request data is
//! in vectors that keep their capacity.

use crate::model::PyTorchModel;
use crate::symbols::AtenTensor;
use crate::tensor::OwnedTensor;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trtserver_framework::execute::{self, Executor};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::{InputBlocks, InputClaims};
use trtserver_plugin_api::author::{AnyThread, Batch, Error, Instance, InstanceContext, Request};

pub struct PyTorchInstance {
    model: Arc<PyTorchModel>,
    scratch: RunScratch,
    threads: usize,
}

#[derive(Default)]
pub struct RunScratch {
    /// The inputs of a run in the model's order; null where none was given.
    pub inputs: Vec<*mut AtenTensor>,
    pub shapes: Vec<Vec<i64>>,
    /// The outputs of a run that have not been passed on.
    pub results: Vec<*mut AtenTensor>,
    /// Position of each requested output in the plan.
    pub requested: Vec<usize>,
    pub claims: InputClaims,
    /// For inputs that cannot be used where they are.
    pub blocks: InputBlocks,
    /// Which requests of the batch have failed.
    failed: Vec<bool>,
}

// SAFETY: torch allows using tensors on any thread; pointers in the scratch space are used during
// one call only.
unsafe impl Send for PyTorchInstance {}

impl Instance for PyTorchInstance {
    type Model = PyTorchModel;

    // Large operations run on OpenMP's threads.
    const ANY_THREAD: AnyThread<Self> = AnyThread::YES;

    fn open(model: &Arc<PyTorchModel>, context: &InstanceContext) -> Result<Self, Error> {
        let mut scratch = RunScratch::default();
        scratch.shapes.resize(model.package.compiled.n_inputs, Vec::new());
        let threads = model.threads.unwrap_or(context.threads());
        Ok(Self { model: Arc::clone(model), scratch, threads })
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        execute::execute_batch(self, batch)
    }
}

impl Executor for PyTorchInstance {
    fn failed(&mut self) -> &mut Vec<bool> {
        &mut self.scratch.failed
    }

    fn whole_batch(&self) -> bool {
        false
    }

    fn can_merge(&self) -> bool {
        self.model.plan.batching && !self.model.unmergeable.load(Ordering::Relaxed)
    }

    fn prepare_merged(&mut self, batch: &Batch<'_>) -> Result<bool, PluginFault> {
        let (model, scratch) = (&*self.model, &mut self.scratch);
        scratch.prepare_gathered(model, batch)?;
        for (nth, request) in batch.requests().enumerate() {
            if !scratch.failed[nth] {
                scratch.add_requested(model, request.requested_outputs())?;
            }
        }
        Ok(!scratch.requested.is_empty())
    }

    fn run_merged(&mut self, batch: &Batch<'_>) -> Result<Option<PluginFault>, PluginFault> {
        let (model, scratch) = (&*self.model, &mut self.scratch);
        batch.mark_compute_start();
        let ran = scratch.run(model, self.threads);
        batch.mark_compute_end();
        if let Err(fault) = ran {
            return Ok(Some(fault));
        }
        // An output that cannot be divided among the requests: each gets its own.
        Ok(scratch.pass_outputs(model, batch.rows(), &mut &*batch).err())
    }

    fn execute_one(
        &mut self,
        request: Request<'_>,
        batch: &Batch<'_>,
        computing: &mut bool,
    ) -> Result<(), PluginFault> {
        let (model, scratch) = (&*self.model, &mut self.scratch);
        scratch.prepare_inputs(model, request)?;
        scratch.add_requested(model, request.requested_outputs())?;
        if !std::mem::replace(computing, true) {
            batch.mark_compute_start();
        }
        let ran = scratch.run(model, self.threads);
        batch.mark_compute_end();
        ran?;
        let mut response = request.new_response()?;
        scratch.pass_outputs(model, request.batch_size(), &mut response)?;
        Ok(response.send()?)
    }

    fn clear(&mut self) {
        self.scratch.clear(&self.model);
    }
}

impl RunScratch {
    fn run(&mut self, model: &PyTorchModel, threads: usize) -> Result<(), PluginFault> {
        // SAFETY: the tensors were made for this run, which alone owns them.
        let ran =
            unsafe { model.package.compiled.run(&mut self.inputs, &mut self.results, threads) };
        ran.map_err(|fault| fault.within(format_args!("model '{}'", model.name)))
    }

    /// Frees what belongs to one run.
    fn clear(&mut self, model: &PyTorchModel) {
        for raw in self.inputs.drain(..).chain(self.results.drain(..)) {
            // SAFETY: a tensor of the run that was not passed on; none for null.
            drop(unsafe { OwnedTensor::from_raw(&model.package.compiled.torch, raw) });
        }
        self.requested.clear();
        self.blocks.trim();
    }
}
