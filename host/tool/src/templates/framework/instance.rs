// SPDX-License-Identifier: Apache-2.0
//! Executes batches: one run for all requests where their shapes agree, else request by request, so
//! that an invalid one gets its own error.

use crate::model::ToyVersion;
use std::borrow::Cow;
use std::sync::Arc;
use trtserver_framework::execute::fail_if_cancelled;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::{InputClaims, accept_shape};
use trtserver_framework::merge::have_equal_inputs;
use trtserver_framework::shape::MAX_RANK;
use trtserver_plugin_api::author::{Batch, Error, Instance, InstanceContext, Request};

pub struct ToyInstance {
    model: Arc<ToyVersion>,
    claims: InputClaims,
}

impl Instance for ToyInstance {
    type Model = ToyVersion;

    fn open(model: &Arc<ToyVersion>, _: &InstanceContext) -> Result<Self, Error> {
        Ok(Self { model: Arc::clone(model), claims: InputClaims::default() })
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        let merges = self.model.plan.batching && batch.len() > 1 && have_equal_inputs(batch);
        if merges && batch.requests().all(|request| self.check(request).is_ok()) {
            return Ok(self.run_merged(batch)?);
        }
        for request in batch.requests() {
            if fail_if_cancelled(request) {
                continue;
            }
            if let Err(fault) = self.run_one(request) {
                request.fail(fault.into());
            }
        }
        Ok(())
    }
}

impl ToyInstance {
    /// The rows of a valid request.
    ///
    /// # Errors
    /// Names the input, what the model expects and what was given.
    fn check(&mut self, request: Request<'_>) -> Result<usize, PluginFault> {
        let (model, plan) = (&self.model.name, &self.model.plan);
        self.claims.begin(plan.inputs.len());
        let mut rows = 0;
        for tensor in request.inputs() {
            let at = self.claims.claim(model, &plan.inputs, tensor)?;
            let (kind, bytes) = (tensor.dtype().to_abi(), tensor.byte_size());
            let mut buffer = [0; MAX_RANK];
            let (slot, given) = (&plan.inputs[at], tensor.shape());
            let shape = accept_shape(model, slot, plan.batching, kind, given, bytes, &mut buffer)?;
            rows = shape.first().copied().and_then(|rows| usize::try_from(rows).ok()).unwrap_or(0);
        }
        self.claims.check_complete(model, &plan.inputs, |slot| !slot.optional)?;
        Ok(rows)
    }

    /// The host gathers the inputs, without a copy where they are adjacent, and gives each request
    /// its rows of the output.
    fn run_merged(&self, batch: &Batch<'_>) -> Result<(), PluginFault> {
        let rows = batch.gather(0)?;
        let shape = [batch.rows() as i64, 1];
        let scores = batch.scatter_slice::<f32>(&self.model.plan.outputs[0].name, &shape)?;
        // Empty: no request asks for it.
        if scores.is_empty() { Ok(()) } else { self.model.file.run(rows.as_slice()?, scores) }
    }

    fn run_one(&mut self, request: Request<'_>) -> Result<(), PluginFault> {
        let rows = self.check(request)?;
        let input = request.required_input(&self.model.plan.inputs[0].name)?;
        let values = match input.as_slice::<f32>() {
            Ok(values) => Cow::Borrowed(values),
            // In several pieces, or misaligned.
            Err(_) => Cow::Owned(input.to_vec::<f32>()?),
        };
        let mut response = request.new_response()?;
        let name = &self.model.plan.outputs[0].name;
        let scores = response.output_slice::<f32>(name, &[rows as i64, 1])?;
        if !scores.is_empty() {
            self.model.file.run(&values, scores)?;
        }
        Ok(response.send()?)
    }
}
