//! Executes several requests in one run: inputs are gathered and outputs scattered by the host.
//!
//! All requests are validated first. If one is invalid, if their shapes differ, or if the run
//! fails, each request is executed by itself and gets its own error: one request must not fail the
//! others. A model with state is an exception: part of a failed run may have changed the state, so
//! that the requests are not run again.

use crate::execute::RunScratch;
use crate::inputs::InputPiece;
use crate::model::TensorFlowModel;
use crate::network::GraphNetwork;
use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::author::Batch;

impl RunScratch {
    /// Creates tensors over the gathered inputs, and lists the outputs that any request requested.
    pub fn prepare_merged(
        &mut self,
        model: &TensorFlowModel,
        network: &GraphNetwork,
        batch: &Batch<'_>,
    ) -> Result<(), PluginFault> {
        self.claims.begin(model.plan.inputs.len());
        let Some(first) = batch.requests().next() else { return Ok(()) };
        for (nth, tensor) in first.inputs().enumerate() {
            let at = self.claims.claim(&model.name, &model.plan.inputs, tensor)?;
            let gathered = batch.gather(nth)?;
            let (dtype, shape) = (gathered.dtype().to_abi(), gathered.shape());
            let piece = InputPiece { at, dtype, shape, bytes: gathered.bytes() };
            self.add_input(model, network, piece, nth)?;
        }
        self.all_claimed(model)?;
        for (nth, request) in batch.requests().enumerate() {
            if !self.failed[nth] {
                self.add_requested(model, network, request.requested_outputs())?;
            }
        }
        Ok(())
    }

    /// Returns why the run failed, if it did. Executing the requests one by one then finds the one
    /// that caused it.
    pub fn run_merged(
        &mut self,
        model: &TensorFlowModel,
        network: &GraphNetwork,
        batch: &Batch<'_>,
    ) -> Result<Option<PluginFault>, PluginFault> {
        batch.mark_compute_start();
        let ran = self.run(network);
        batch.mark_compute_end();
        if let Err(fault) = ran {
            let fault = fault.within(format_args!("model '{}'", model.name));
            return if model.has_state { Err(fault) } else { Ok(Some(fault)) };
        }
        match self.pass_outputs(model, batch.rows(), &mut &*batch) {
            Ok(()) => Ok(None),
            Err(fault) if model.has_state => Err(fault),
            // An output that cannot be divided among the requests: each gets its own.
            Err(fault) => Ok(Some(fault)),
        }
    }
}
