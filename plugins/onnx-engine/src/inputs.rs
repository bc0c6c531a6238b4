//! Converts inputs of a request to values of the library: validated first, in place where possible.

use crate::check::TensorSlot;
use crate::execute::RunScratch;
use crate::model::OnnxModel;
use crate::strings;
use crate::value::OnnxValue;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::type_size;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Request, Tensor};

impl RunScratch {
    /// Validates the inputs and creates their values. Missing inputs are detected here because the
    /// library would run part of the graph before it fails.
    pub fn prepare_inputs(
        &mut self,
        model: &OnnxModel,
        request: Request<'_>,
    ) -> Result<(), PluginFault> {
        self.expect_inputs(model);
        for (nth, tensor) in request.inputs().enumerate() {
            let slot = self.claim(model, tensor)?;
            let value = self.wrap_input(model, slot, tensor, nth)?;
            self.add_input(slot, value);
        }
        self.all_claimed(model)
    }

    pub fn expect_inputs(&mut self, model: &OnnxModel) {
        self.claims.begin(model.plan.inputs.len());
    }

    /// The model's input for a tensor of the request; each may be claimed once.
    pub fn claim<'m>(
        &mut self,
        model: &'m OnnxModel,
        tensor: Tensor<'_>,
    ) -> Result<&'m TensorSlot, PluginFault> {
        let slots = &model.plan.inputs;
        Ok(&slots[self.claims.claim(&model.name, slots, tensor)?])
    }

    pub fn add_input(&mut self, slot: &TensorSlot, value: OnnxValue) {
        self.input_names.push(slot.handle.c_name.as_ptr());
        self.input_values.push(value.as_ptr());
        self.inputs.push(value);
    }

    pub fn all_claimed(&self, model: &OnnxModel) -> Result<(), PluginFault> {
        // An input that is optional for clients is required by the model unless the file has a
        // default for it.
        self.claims.check_complete(&model.name, &model.plan.inputs, |slot| model.requires(slot))
    }

    fn wrap_input(
        &mut self,
        model: &OnnxModel,
        slot: &TensorSlot,
        tensor: Tensor<'_>,
        nth: usize,
    ) -> Result<OnnxValue, PluginFault> {
        let mut buffer = [0; MAX_RANK];
        let bytes = tensor.byte_size();
        let kind = tensor.dtype().to_abi();
        let shape = model.accepted(slot, kind, tensor.shape(), bytes, &mut buffer)?;
        let runtime = model.session.runtime;
        if slot.dtype == dtype::STRING {
            if let Some(data) = tensor.contiguous() {
                return strings::decode_strings(runtime, &slot.name, shape, data);
            }
            let data = self.blocks.gather(tensor, nth)?;
            // SAFETY: `bytes` bytes were just gathered there.
            let data = unsafe { std::slice::from_raw_parts(data, bytes) };
            return strings::decode_strings(runtime, &slot.name, shape, data);
        }
        let data = match tensor.contiguous() {
            Some(data) if data.as_ptr().addr().is_multiple_of(type_size(slot.dtype)) => {
                data.as_ptr().cast_mut()
            }
            _ => self.blocks.gather(tensor, nth)?,
        };
        self.borrowed.push(data.addr()..data.addr() + bytes);
        // SAFETY: the host's memory is valid until the request is released, gathered memory until
        // the values are dropped in `clear`; both are aligned. The library only reads inputs.
        unsafe { OnnxValue::over(runtime, slot.handle.element, shape, data, bytes) }
    }
}
