//! Inputs of a request as tensors of the library: checked first, in place where possible.

use crate::instance::RunScratch;
use crate::model::LoadedModel;
use crate::network::TensorSlot;
use crate::tensor::Tensor as OvTensor;
use crate::types::find_wide_number;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::accept_shape;
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{type_name, type_size};
use trtserver_plugin_api::author::{Request, Tensor};

impl RunScratch {
    /// Checks the inputs and gives them to the run.
    ///
    /// # Errors
    /// The request does not fit the model.
    pub fn prepare_inputs(
        &mut self,
        model: &LoadedModel,
        request: Request<'_>,
    ) -> Result<(), PluginFault> {
        self.claims.begin(model.plan.inputs.len());
        for (nth, tensor) in request.inputs().enumerate() {
            let slot =
                &model.plan.inputs[self.claims.claim(&model.name, &model.plan.inputs, tensor)?];
            self.set_input(model, slot, tensor, nth)?;
        }
        self.all_claimed(model)
    }

    /// # Errors
    /// An input of the model was not given: a network has no optional ones.
    pub fn all_claimed(&self, model: &LoadedModel) -> Result<(), PluginFault> {
        self.claims.check_complete(&model.name, &model.plan.inputs, |_| true)
    }

    fn set_input(
        &mut self,
        model: &LoadedModel,
        slot: &TensorSlot,
        tensor: Tensor<'_>,
        nth: usize,
    ) -> Result<(), PluginFault> {
        let (kind, bytes) = (tensor.dtype().to_abi(), tensor.byte_size());
        let mut buffer = [0; MAX_RANK];
        let batching = model.plan.batching;
        let given = tensor.shape();
        let shape = accept_shape(&model.name, slot, batching, kind, given, bytes, &mut buffer)?;
        let data = match tensor.contiguous() {
            Some(data) if is_aligned(data, slot) => data.as_ptr().cast_mut(),
            _ => self.blocks.gather(tensor, nth)?,
        };
        // SAFETY: the host's memory is valid until the request is released, gathered memory until
        // `clear`; each run is given all inputs anew. The library only reads inputs.
        unsafe {
            if bytes > 0 {
                expect_narrow(model, slot, std::slice::from_raw_parts(data, bytes))?;
            }
            self.bind_input(slot, shape, data)
        }
    }

    /// # Errors
    /// The library's.
    ///
    /// # Safety
    /// Memory of the slot's type and the shape, valid until the run has ended.
    pub unsafe fn bind_input(
        &mut self,
        slot: &TensorSlot,
        shape: &[i64],
        data: *mut u8,
    ) -> Result<(), PluginFault> {
        // SAFETY: the caller's promise.
        unsafe {
            let tensor = OvTensor::over(self.run.library(), slot.handle, shape, data)?;
            self.run.set_input(slot.handle.index, &tensor)
        }
        .map_err(|fault| fault.within(format_args!("input '{}'", slot.name)))
    }
}

/// # Errors
/// The library would compute with other numbers.
pub fn expect_narrow(
    model: &LoadedModel,
    slot: &TensorSlot,
    data: &[u8],
) -> Result<(), PluginFault> {
    match find_wide_number(slot.dtype, data) {
        None => Ok(()),
        Some(number) => Err(PluginFault::invalid(format!(
            "input '{}' for model '{}' has the number {number}, and OpenVINO computes {} in 32 bits: only numbers from \
             -2147483648 to 2147483647 are exact",
            slot.name,
            model.name,
            type_name(slot.dtype)
        ))),
    }
}

/// Whether elements of the slot may begin at this address.
pub fn is_aligned(data: &[u8], slot: &TensorSlot) -> bool {
    data.as_ptr().addr().is_multiple_of(type_size(slot.dtype).max(1))
}
