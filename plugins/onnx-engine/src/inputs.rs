//! Converts inputs of a request to values of the library: validated first, in place where possible.

use crate::check::Slot;
use crate::execute::Scratch;
use crate::model::OnnxModel;
use crate::strings;
use crate::value::Value;
use trtserver_framework::fault::Fault;
use trtserver_framework::shape;
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::slot::position;
use trtserver_framework::types::{elements, shape_text, type_name, type_size};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Request, Tensor};

impl Scratch {
    /// Validates the inputs and creates their values. Missing inputs are detected here because the library would run part
    /// of the graph before it fails.
    pub fn prepare_inputs(&mut self, model: &OnnxModel, request: Request<'_>) -> Result<(), Fault> {
        self.expect_inputs(model);
        for (nth, tensor) in request.inputs().enumerate() {
            let slot = self.claim(model, tensor)?;
            let value = self.value_of(model, slot, tensor, nth)?;
            self.add_input(slot, value);
        }
        self.all_claimed(model)
    }

    pub fn expect_inputs(&mut self, model: &OnnxModel) {
        self.claimed.clear();
        self.claimed.resize(model.plan.inputs.len(), false);
    }

    /// The model's input for a tensor of the request; each may be claimed once.
    pub fn claim<'m>(
        &mut self,
        model: &'m OnnxModel,
        tensor: Tensor<'_>,
    ) -> Result<&'m Slot, Fault> {
        let plan = &model.plan;
        let at = position(&plan.inputs, tensor.index(), tensor.name()).ok_or_else(|| {
            Fault::invalid(format!(
                "unexpected inference input '{}' for model '{}'",
                tensor.name(),
                model.name
            ))
        })?;
        if std::mem::replace(&mut self.claimed[at], true) {
            return Err(Fault::invalid(format!(
                "input '{}' for model '{}' is given twice",
                tensor.name(),
                model.name
            )));
        }
        Ok(&plan.inputs[at])
    }

    pub fn add_input(&mut self, slot: &Slot, value: Value) {
        self.input_names.push(slot.handle.c_name.as_ptr());
        self.input_values.push(value.as_ptr());
        self.inputs.push(value);
    }

    pub fn all_claimed(&self, model: &OnnxModel) -> Result<(), Fault> {
        let missing = model.plan.inputs.iter().zip(&self.claimed).find(|(slot, claimed)| {
            // An input that is optional for clients is required by the model unless the file has a default for it.
            !**claimed && model.requires(slot)
        });
        match missing {
            None => Ok(()),
            Some((slot, _)) => Err(Fault::invalid(format!(
                "input '{}' is required by model '{}' and was not given",
                slot.name, model.name
            ))),
        }
    }

    fn value_of(
        &mut self,
        model: &OnnxModel,
        slot: &Slot,
        tensor: Tensor<'_>,
        nth: usize,
    ) -> Result<Value, Fault> {
        let mut buffer = [0; MAX_RANK];
        let bytes = tensor.byte_size();
        let kind = tensor.dtype().to_abi();
        let shape = accepted(model, slot, kind, tensor.shape(), bytes, &mut buffer)?;
        let runtime = model.session.runtime;
        if slot.dtype == dtype::STRING {
            if let Some(data) = tensor.contiguous() {
                return strings::decode(runtime, &slot.name, shape, data);
            }
            let data = self.gather(tensor, nth)?;
            // SAFETY: `bytes` bytes were just gathered there.
            let data = unsafe { std::slice::from_raw_parts(data, bytes) };
            return strings::decode(runtime, &slot.name, shape, data);
        }
        let data = match tensor.contiguous() {
            Some(data) if data.as_ptr().addr().is_multiple_of(type_size(slot.dtype)) => {
                data.as_ptr().cast_mut()
            }
            _ => self.gather(tensor, nth)?,
        };
        self.borrowed.push(data.addr()..data.addr() + bytes);
        // SAFETY: the host's memory is valid until the request is released, gathered memory until the values are
        // dropped in `clear`; both are aligned. The library only reads inputs.
        unsafe { Value::over(runtime, slot.handle.element, shape, data, bytes) }
    }

    /// Concatenates the parts of an input.
    fn gather(&mut self, tensor: Tensor<'_>, nth: usize) -> Result<*mut u8, Fault> {
        if self.gathered.len() <= nth {
            self.gathered.resize_with(nth + 1, Vec::new);
        }
        let buffer = &mut self.gathered[nth];
        buffer.clear();
        let bytes = tensor.byte_size();
        buffer.resize(bytes.div_ceil(size_of::<u128>()), 0);
        let start = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: the buffer is large enough and initialised.
        copy_parts(tensor, unsafe { std::slice::from_raw_parts_mut(start, bytes) })?;
        Ok(start)
    }
}

/// Copies the parts of an input to a buffer of its size.
pub fn copy_parts(tensor: Tensor<'_>, mut to: &mut [u8]) -> Result<(), Fault> {
    let total: usize = tensor.parts().map(<[u8]>::len).sum();
    if total != to.len() {
        return Err(Fault::internal(format!(
            "input '{}': only {total} of {} bytes are in CPU memory",
            tensor.name(),
            to.len()
        )));
    }
    for part in tensor.parts() {
        let (start, rest) = to.split_at_mut(part.len());
        start.copy_from_slice(part);
        to = rest;
    }
    Ok(())
}

/// The shape in which the model takes an input of this type, shape and size.
pub fn accepted<'a>(
    model: &OnnxModel,
    slot: &Slot,
    kind: u32,
    given: &'a [i64],
    bytes: usize,
    buffer: &'a mut [i64; MAX_RANK],
) -> Result<&'a [i64], Fault> {
    if kind != slot.dtype {
        return Err(Fault::invalid(format!(
            "inference input '{}' data-type is '{}', model '{}' expects '{}'",
            slot.name,
            type_name(kind),
            model.name,
            type_name(slot.dtype)
        )));
    }
    let shape = shape::for_model(slot, model.plan.batching, given, buffer).ok_or_else(|| {
        Fault::invalid(format!(
            "unexpected shape for input '{}' for model '{}'. Expected {}, got {}",
            slot.name,
            model.name,
            shape_text(&slot.dims),
            shape_text(given)
        ))
    })?;
    let expected = elements(shape).and_then(|n| n.checked_mul(type_size(slot.dtype)));
    if slot.dtype != dtype::STRING && expected != Some(bytes) {
        return Err(Fault::invalid(format!(
            "unexpected total byte size {bytes} for input '{}' of model '{}' with shape {}, \
             expecting {}",
            slot.name,
            model.name,
            shape_text(shape),
            expected.map_or_else(|| "less".to_owned(), |n| n.to_string())
        )));
    }
    Ok(shape)
}
