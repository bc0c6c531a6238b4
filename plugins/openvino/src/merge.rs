//! Executes several requests in one run: inputs are gathered and outputs scattered by the host.
//!
//! All requests are checked first. If one is invalid, if their shapes differ, or if the run fails,
//! each request is executed by itself and gets its own error.

use crate::inputs::{expect_narrow, is_aligned};
use crate::instance::RunScratch;
use crate::model::LoadedModel;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::accept_shape;
use trtserver_framework::shape::MAX_RANK;
use trtserver_plugin_api::author::Batch;

impl RunScratch {
    /// Gives the run the gathered inputs, and lists the outputs that any request requested.
    ///
    /// # Errors
    /// A request does not fit the model.
    pub fn prepare_merged(
        &mut self,
        model: &LoadedModel,
        batch: &Batch<'_>,
    ) -> Result<(), PluginFault> {
        self.claims.begin(model.plan.inputs.len());
        let Some(first) = batch.requests().next() else { return Ok(()) };
        for (nth, tensor) in first.inputs().enumerate() {
            let slot =
                &model.plan.inputs[self.claims.claim(&model.name, &model.plan.inputs, tensor)?];
            let gathered = batch.gather(nth)?;
            let (kind, data) = (gathered.dtype().to_abi(), gathered.bytes());
            let mut buffer = [0; MAX_RANK];
            let (batching, given) = (model.plan.batching, gathered.shape());
            let shape =
                accept_shape(&model.name, slot, batching, kind, given, data.len(), &mut buffer)?;
            if !data.is_empty() && !is_aligned(data, slot) {
                return Err(PluginFault::internal("a gathered block is not aligned"));
            }
            expect_narrow(model, slot, data)?;
            // SAFETY: the host's block is valid until the batch is finished, which is after the
            // run; the library only reads inputs.
            unsafe { self.bind_input(slot, shape, data.as_ptr().cast_mut())? };
        }
        self.all_claimed(model)?;
        for (nth, request) in batch.requests().enumerate() {
            if !self.failed[nth] {
                self.add_requested(model, request.requested_outputs())?;
            }
        }
        Ok(())
    }

    /// Returns why the run failed, if it did: executing the requests one by one finds the one that
    /// caused it, and an output whose rows cannot be divided.
    ///
    /// # Errors
    /// The host's.
    pub fn run_merged(
        &mut self,
        model: &LoadedModel,
        batch: &Batch<'_>,
    ) -> Result<Option<PluginFault>, PluginFault> {
        let mut outlet = batch;
        self.prepare_outputs(model, batch.rows(), &mut outlet, model.findings.preallocates())?;
        self.empty_outputs(model)?;
        batch.mark_compute_start();
        let ran = self.run.execute();
        batch.mark_compute_end();
        if let Err(fault) = ran {
            return Ok(Some(fault.within(format_args!("model '{}'", model.name))));
        }
        Ok(match self.pass_outputs(model, batch.rows(), &mut outlet) {
            Ok(true) => None,
            Ok(false) => {
                model.findings.stop_preallocating();
                Some(PluginFault::internal("an output has another shape than its block"))
            }
            Err(fault) => Some(fault),
        })
    }
}
