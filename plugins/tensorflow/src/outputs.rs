//! The outputs of a run: adopted by the host, or copied where TensorFlow may change or share the
//! memory.

use crate::execute::RunScratch;
use crate::model::TensorFlowModel;
use crate::network::GraphNetwork;
use crate::plan::TensorSlot;
use crate::strings;
use crate::tensor::OwnedTensor;
use crate::types;
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::outlet::{
    MemoryDonation, OutputOutlet, OutputTensor, output_shape, requested_position,
};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{element_count, type_name, type_size};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Dtype, Memory, RequestedOutput};

/// Writes the shape of a result to the buffer, and returns its rank.
///
/// # Errors
/// The result has another type than the slot.
fn expect_type(
    slot: &TensorSlot,
    tensor: &OwnedTensor,
    buffer: &mut [i64; MAX_RANK],
) -> Result<usize, PluginFault> {
    let (data_type, rank) = tensor.describe(buffer)?;
    if types::to_dtype(data_type) != slot.dtype {
        return Err(PluginFault::internal(format!(
            "the model returned {} instead of {}",
            types::element_name(data_type),
            type_name(slot.dtype)
        )));
    }
    Ok(rank)
}

impl RunScratch {
    /// Adds the requested outputs to those of this run.
    pub fn add_requested<'a>(
        &mut self,
        model: &TensorFlowModel,
        network: &GraphNetwork,
        outputs: impl Iterator<Item = RequestedOutput<'a>>,
    ) -> Result<(), PluginFault> {
        for requested in outputs {
            let at = requested_position(&model.name, &model.plan.outputs, requested)?;
            if !self.requested.contains(&at) {
                self.requested.push(at);
                self.outputs.push(network.outputs[at]);
            }
        }
        Ok(())
    }

    /// Passes the results of a run of `rows` rows to the host.
    pub fn pass_outputs(
        &mut self,
        model: &TensorFlowModel,
        rows: usize,
        outlet: &mut impl OutputOutlet,
    ) -> Result<(), PluginFault> {
        for nth in 0..self.requested.len() {
            let raw = std::mem::replace(&mut self.results[nth], ptr::null_mut());
            // SAFETY: allocated by the run, and removed from the list of results to free.
            let tensor = unsafe { OwnedTensor::from_raw(model.runtime, raw)? };
            let slot = &model.plan.outputs[self.requested[nth]];
            let within = |fault: PluginFault| {
                fault.within(format_args!("model '{}', output '{}'", model.name, slot.name))
            };
            let mut buffer = [0; MAX_RANK];
            let rank = expect_type(slot, &tensor, &mut buffer).map_err(within)?;
            let rows = model.plan.batching.then_some(rows);
            let shape = output_shape(slot, rows, &mut buffer, rank)
                .map_err(within)
                .inspect_err(|fault| model.stop_merging(fault))?;
            self.pass_output(model, slot, shape, outlet, tensor).map_err(within)?;
        }
        Ok(())
    }

    fn pass_output(
        &self,
        model: &TensorFlowModel,
        slot: &TensorSlot,
        shape: &[i64],
        outlet: &mut impl OutputOutlet,
        tensor: OwnedTensor,
    ) -> Result<(), PluginFault> {
        let count = element_count(shape).unwrap_or(0);
        let output = OutputTensor { name: &slot.name, kind: Dtype::from_abi(slot.dtype), shape };
        let data = tensor.data();
        if slot.dtype == dtype::STRING {
            // SAFETY: a STRING tensor has as many strings as its shape says; views among them refer
            // to the request.
            let bytes = unsafe { strings::encoded_size(data, count) };
            let (to, n) = outlet.block(output, bytes)?;
            if !to.is_null() && n >= bytes {
                // SAFETY: the block is the host's, has `bytes` bytes and is exclusive until the
                // response is sent; the tensor has `count` strings.
                unsafe {
                    strings::encode_strings(data, count, std::slice::from_raw_parts_mut(to, bytes));
                }
            }
            return Ok(());
        }
        let bytes = count * type_size(slot.dtype);
        if tensor.byte_size() < bytes {
            let found = tensor.byte_size();
            return Err(PluginFault::internal(format!("{found} bytes instead of {bytes}")));
        }
        // An input passed through as an output shares the input's memory, which the host releases
        // with the request; an empty output may do so without lying in it. A model that keeps
        // tensors may change them in its next run.
        let shared = bytes == 0 || self.borrowed.iter().any(|range| range.contains(&data.addr()));
        if shared || model.copies() {
            let (to, n) = outlet.block(output, bytes)?;
            if bytes > 0 && !to.is_null() && n >= bytes {
                // SAFETY: `bytes` bytes of a live tensor; the host's new block does not overlap.
                unsafe { ptr::copy_nonoverlapping(data, to, bytes) };
            }
            return Ok(());
        }
        let (owner, release) = tensor.into_raw();
        // SAFETY: the memory belongs to the tensor, which lives until the host releases it.
        unsafe {
            Ok(outlet.donate(
                output,
                MemoryDonation { data, bytes, memory: Memory::CPU, release, owner },
            )?)
        }
    }
}
