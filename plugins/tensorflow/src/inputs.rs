//! Converts inputs of a request to tensors: validated first, in place where possible.

use crate::execute::RunScratch;
use crate::model::TensorFlowModel;
use crate::network::GraphNetwork;
use crate::strings;
use crate::tensor::OwnedTensor;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::accept_shape;
use trtserver_framework::shape::MAX_RANK;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{self, Request};

/// An input in one piece: of one request, or gathered over a batch.
pub struct InputPiece<'a> {
    /// Position in the plan.
    pub at: usize,
    pub dtype: u32,
    pub shape: &'a [i64],
    pub bytes: &'a [u8],
}

impl RunScratch {
    /// Validates the inputs and creates their tensors. Missing inputs are detected here because
    /// TensorFlow would run part of the graph before it fails.
    pub fn prepare_inputs(
        &mut self,
        model: &TensorFlowModel,
        network: &GraphNetwork,
        request: Request<'_>,
    ) -> Result<(), PluginFault> {
        self.claims.begin(model.plan.inputs.len());
        for (nth, tensor) in request.inputs().enumerate() {
            let at = self.claims.claim(&model.name, &model.plan.inputs, tensor)?;
            let bytes = match tensor.contiguous() {
                Some(bytes) => bytes,
                None => self.gather(tensor, 2 * nth)?,
            };
            let (dtype, shape) = (tensor.dtype().to_abi(), tensor.shape());
            self.add_input(model, network, InputPiece { at, dtype, shape, bytes }, nth)?;
        }
        self.all_claimed(model)
    }

    pub fn all_claimed(&self, model: &TensorFlowModel) -> Result<(), PluginFault> {
        self.claims.check_complete(&model.name, &model.plan.inputs, |slot| !slot.optional)
    }

    fn gather<'a>(
        &mut self,
        tensor: author::Tensor<'a>,
        block: usize,
    ) -> Result<&'a [u8], PluginFault> {
        let start = self.blocks.gather(tensor, block)?;
        // SAFETY: so many bytes were just gathered there, and the block is not used again before
        // `clear`, when the request's tensors are dropped.
        Ok(unsafe { std::slice::from_raw_parts(start, tensor.byte_size()) })
    }

    /// Adds the tensor for an input; `nth` numbers the inputs of a run.
    pub fn add_input(
        &mut self,
        model: &TensorFlowModel,
        network: &GraphNetwork,
        piece: InputPiece<'_>,
        nth: usize,
    ) -> Result<(), PluginFault> {
        let InputPiece { at, dtype, shape, bytes } = piece;
        let slot = &model.plan.inputs[at];
        let (runtime, batching) = (model.runtime, model.plan.batching);
        let mut buffer = [0; MAX_RANK];
        let shape =
            accept_shape(&model.name, slot, batching, dtype, shape, bytes.len(), &mut buffer)?;
        let tensor = match slot.dtype {
            dtype::STRING if model.copies_strings() => {
                strings::decode_copies(runtime, &slot.name, shape, bytes)?
            }
            dtype::STRING => {
                let block = (&mut self.blocks, 2 * nth + 1);
                // SAFETY: the request's bytes and the block are valid until `clear`, which drops
                // the tensor first.
                let (tensor, address, size) = unsafe {
                    strings::decode_strings(runtime, &slot.name, shape, bytes, block, &self.borrow)?
                };
                self.borrowed.push(address..address + size);
                tensor
            }
            _ if model.copies() => {
                OwnedTensor::copy_from(runtime, slot.handle.data_type, shape, bytes)?
            }
            _ => {
                let address = bytes.as_ptr().addr();
                self.borrowed.push(address..address + bytes.len());
                // SAFETY: the request's bytes are valid until `clear`, which drops the tensor
                // first.
                unsafe {
                    let (kind, data) = (slot.handle.data_type, bytes.as_ptr());
                    OwnedTensor::over(runtime, kind, shape, data, bytes.len(), &self.borrow)?
                }
            }
        };
        self.inputs.push(network.inputs[at]);
        self.raw_values.push(tensor.as_ptr());
        self.values.push(tensor);
        Ok(())
    }
}
