//! The outputs of a run, copied into the host's blocks.

use crate::declared::TensorSlot;
use crate::execute::RunScratch;
use crate::model::PyTorchModel;
use crate::tensor::OwnedTensor;
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::outlet::{
    OutputOutlet, OutputTensor, expect_configured, output_shape, requested_position,
};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{element_count, type_name, type_size};
use trtserver_plugin_api::author::{Dtype, RequestedOutput};

impl RunScratch {
    /// Adds the requested outputs to those of this run.
    pub fn add_requested<'a>(
        &mut self,
        model: &PyTorchModel,
        outputs: impl Iterator<Item = RequestedOutput<'a>>,
    ) -> Result<(), PluginFault> {
        for requested in outputs {
            let at = requested_position(&model.name, &model.plan.outputs, requested)?;
            if !self.requested.contains(&at) {
                self.requested.push(at);
            }
        }
        Ok(())
    }

    /// Passes the requested outputs of a run of `rows` rows to the host.
    pub fn pass_outputs(
        &mut self,
        model: &PyTorchModel,
        rows: usize,
        outlet: &mut impl OutputOutlet,
    ) -> Result<(), PluginFault> {
        for at in &self.requested {
            let slot = &model.plan.outputs[*at];
            let within = |fault: PluginFault| {
                fault.within(format_args!("model '{}', output '{}'", model.name, slot.name))
            };
            let raw = std::mem::replace(&mut self.results[slot.handle.position], ptr::null_mut());
            // SAFETY: an output of the run, removed from the list of those to free.
            let tensor = unsafe { OwnedTensor::from_raw(&model.package.compiled.torch, raw) };
            let tensor = tensor.map_err(within)?;
            let mut buffer = [0; MAX_RANK];
            let (dtype, rank) = tensor.describe(&mut buffer).map_err(within)?;
            expect_type(model, slot, dtype).map_err(within)?;
            // The tensor's own shape: `buffer` becomes the client's.
            let (own, own_rank) = (buffer, rank);
            let rows = model.plan.batching.then_some(rows);
            let shape = output_shape(slot, rows, &mut buffer, rank)
                .map_err(within)
                .inspect_err(|fault| model.stop_merging(fault))?;
            expect_configured(&model.name, slot, shape)?;
            let bytes = element_count(shape).unwrap_or(0) * type_size(slot.dtype);
            let output =
                OutputTensor { name: &slot.name, kind: Dtype::from_abi(slot.dtype), shape };
            let (to, n) = outlet.block(output, bytes)?;
            if !to.is_null() && n >= bytes {
                // SAFETY: the block is the host's, has `bytes` bytes, as many as the elements, and
                // is exclusive until the response is sent.
                unsafe { tensor.copy_to(dtype, &own[..own_rank], to, bytes) }.map_err(within)?;
            }
        }
        Ok(())
    }
}

/// # Errors
/// The output has another type than the configuration says.
fn expect_type(model: &PyTorchModel, slot: &TensorSlot, found: i32) -> Result<(), PluginFault> {
    if found == slot.handle.dtype {
        return Ok(());
    }
    let found = match model.package.compiled.torch.dtypes.dtype(found) {
        Some(own) => type_name(own),
        None => format!("elements of torch's type {found}, which the server lacks"),
    };
    Err(PluginFault::invalid(format!(
        "the model returned {found}, and the configuration says {}",
        type_name(slot.dtype)
    )))
}
