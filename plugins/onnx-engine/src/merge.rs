//! Executes several requests in one run: inputs are gathered and outputs scattered by the host.
//!
//! All requests are validated first. If one is invalid, if their shapes differ, or if the run
//! fails, each request is executed by itself and gets its own error: one request must not fail the
//! others. So it is if an output has not the rows of the batch: then the first dimension is not a
//! batch, and requests are not merged again.

use crate::execute::{RunScratch, is_wrong_block};
use crate::model::OnnxModel;
use crate::strings;
use crate::value::OnnxValue;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::type_size;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::Batch;

impl RunScratch {
    /// Creates values over the gathered inputs, and lists the outputs that any request requested.
    pub fn prepare_merged(
        &mut self,
        model: &OnnxModel,
        batch: &Batch<'_>,
    ) -> Result<(), PluginFault> {
        self.expect_inputs(model);
        let Some(first) = batch.requests().next() else { return Ok(()) };
        for (nth, tensor) in first.inputs().enumerate() {
            let slot = self.claim(model, tensor)?;
            let gathered = batch.gather(nth)?;
            let (kind, data) = (gathered.dtype().to_abi(), gathered.bytes());
            let mut buffer = [0; MAX_RANK];
            let shape = model.accepted(slot, kind, gathered.shape(), data.len(), &mut buffer)?;
            let runtime = model.session.runtime;
            let value = if slot.dtype == dtype::STRING {
                strings::decode_strings(runtime, &slot.name, shape, data)?
            } else {
                let at = data.as_ptr().addr();
                if !data.is_empty() && !at.is_multiple_of(type_size(slot.dtype)) {
                    return Err(PluginFault::internal("a gathered block is not aligned"));
                }
                self.borrowed.push(at..at + data.len());
                // SAFETY: the host's block is valid until the batch is finished, longer than the
                // value; it is aligned, and the library only reads inputs.
                unsafe {
                    let data = data.as_ptr().cast_mut();
                    OnnxValue::over(
                        runtime,
                        slot.handle.element,
                        shape,
                        data,
                        gathered.bytes().len(),
                    )?
                }
            };
            self.add_input(slot, value);
        }
        self.all_claimed(model)?;
        for (nth, request) in batch.requests().enumerate() {
            if !self.failed[nth] {
                self.add_requested(model, request.requested_outputs())?;
            }
        }
        Ok(())
    }

    /// Returns why the run failed, if it did. Executing the requests one by one then finds the one
    /// that caused it, and detects an output whose declared shape is wrong. Requests that cannot be
    /// executed one by one get no blocks of a declared shape.
    pub fn run_merged(
        &mut self,
        model: &OnnxModel,
        batch: &Batch<'_>,
    ) -> Result<Option<PluginFault>, PluginFault> {
        let preallocate = !model.plan.whole_batch && model.findings.preallocates();
        let mut outlet = batch;
        self.prepare_outputs(model, batch.rows(), &mut outlet, preallocate)?;
        batch.mark_compute_start();
        let ran = self.run(model);
        batch.mark_compute_end();
        if let Err(fault) = ran {
            if is_wrong_block(&fault) {
                // Which output it is, the next merged run shows.
                model.findings.stop_preallocating();
            }
            return Ok(Some(fault.within(format_args!("model '{}'", model.name))));
        }
        // An output that cannot be divided among the requests: each gets its own.
        Ok(self.pass_outputs(model, batch.rows(), &mut outlet).err())
    }
}
