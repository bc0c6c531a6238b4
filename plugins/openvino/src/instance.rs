//! Executes batches: several requests in one run where their shapes agree (see `merge.rs`), else
//! each request by itself.
//!
//! Inputs are used in place; outputs are written to memory of the host when their shape is known
//! before the run, and copied when it is not.

use crate::compiled::Run;
use crate::model::{LoadedModel, OpenVinoModel};
use crate::outputs::RequestedSlot;
use crate::tensor::Tensor;
use std::sync::Arc;
use trtserver_framework::execute::{Executor, execute_batch};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::{InputBlocks, InputClaims};
use trtserver_plugin_api::author::{
    AnyThread, Batch, Error, Instance, InstanceContext, Kind, Request,
};

/// Executes batches of one model.
pub struct OpenVinoInstance {
    scratch: RunScratch,
    model: Arc<LoadedModel>,
}

/// What belongs to the runs of an instance.
pub struct RunScratch {
    pub run: Run,
    /// The library's memory for each output of the network.
    pub own_outputs: Vec<Tensor>,
    /// Outputs of the network that the run would write into blocks of the host.
    pub bound: Vec<usize>,
    pub requested: Vec<RequestedSlot>,
    pub claims: InputClaims,
    /// For inputs that are in several parts or unaligned.
    pub blocks: InputBlocks,
    /// Which requests of the batch have failed.
    pub failed: Vec<bool>,
}

impl RunScratch {
    /// # Errors
    /// The library's.
    pub fn new(model: &LoadedModel) -> Result<Self, PluginFault> {
        let run = Run::new(&model.compiled)?;
        let outputs = 0..model.signature.outputs.len();
        let own_outputs = outputs.map(|index| run.output(index)).collect::<Result<_, _>>()?;
        Ok(Self {
            run,
            own_outputs,
            bound: Vec::new(),
            requested: Vec::new(),
            claims: InputClaims::default(),
            blocks: InputBlocks::default(),
            failed: Vec::new(),
        })
    }
}

impl Instance for OpenVinoInstance {
    type Model = OpenVinoModel;
    // Operators run on the library's own threads.
    const ANY_THREAD: AnyThread<Self> = AnyThread::YES;

    fn open(model: &Arc<OpenVinoModel>, context: &InstanceContext) -> Result<Self, Error> {
        let model = model.loaded(context.kind() == Kind::Model, context.log())?;
        let scratch = RunScratch::new(&model)
            .map_err(|fault| fault.within(format_args!("instance '{}'", context.name())))?;
        Ok(Self { scratch, model })
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        execute_batch(self, batch)
    }
}

impl Executor for OpenVinoInstance {
    fn failed(&mut self) -> &mut Vec<bool> {
        &mut self.scratch.failed
    }

    fn whole_batch(&self) -> bool {
        self.model.plan.whole_batch
    }

    fn can_merge(&self) -> bool {
        self.model.plan.batching && self.model.findings.merges()
    }

    fn prepare_merged(&mut self, batch: &Batch<'_>) -> Result<bool, PluginFault> {
        self.scratch.restore_outputs()?;
        self.scratch.prepare_merged(&self.model, batch)?;
        Ok(!self.scratch.requested.is_empty())
    }

    fn run_merged(&mut self, batch: &Batch<'_>) -> Result<Option<PluginFault>, PluginFault> {
        self.scratch.run_merged(&self.model, batch)
    }

    fn clear(&mut self) {
        self.scratch.requested.clear();
        self.scratch.blocks.trim();
    }

    fn execute_one(
        &mut self,
        request: Request<'_>,
        batch: &Batch<'_>,
        computing: &mut bool,
    ) -> Result<(), PluginFault> {
        let (model, scratch) = (&*self.model, &mut self.scratch);
        let rows = request.batch_size();
        scratch.prepare_inputs(model, request)?;
        let mut preallocate = model.findings.preallocates();
        loop {
            scratch.restore_outputs()?;
            scratch.requested.clear();
            let mut response = request.new_response()?;
            scratch.add_requested(model, request.requested_outputs())?;
            if scratch.requested.is_empty() {
                return Ok(response.send()?);
            }
            let blocks = scratch.prepare_outputs(model, rows, &mut response, preallocate)?;
            if !std::mem::replace(computing, true) {
                batch.mark_compute_start();
            }
            scratch.empty_outputs(model)?;
            let ran = scratch.run.execute();
            batch.mark_compute_end();
            let passed = match ran {
                Ok(()) => scratch.pass_outputs(model, rows, &mut response)?,
                // An output may be larger than its block: the run without blocks shows.
                Err(_) if blocks => false,
                Err(fault) => return Err(fault.within(format_args!("model '{}'", model.name))),
            };
            if passed {
                if !preallocate && model.findings.preallocates() {
                    // With blocks it had failed.
                    model.findings.stop_preallocating();
                }
                return Ok(response.send()?);
            }
            drop(response);
            preallocate = false;
        }
    }
}
