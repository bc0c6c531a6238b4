//! The outputs of a run: written into blocks of the host, or adopted by the host.

use crate::check::{TensorPlan, TensorSlot};
use crate::execute::RunScratch;
use crate::model::OnnxModel;
use crate::strings;
use crate::value::{self, OnnxValue};
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::outlet::{
    MemoryDonation, OutputOutlet, OutputTensor, output_shape, requested_position,
};
use trtserver_framework::shape;
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{element_count, type_name, type_size};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Dtype, Memory, RequestedOutput};

/// Adds outputs to those requested of a run: each once, by position in the plan, in no block of the
/// host yet.
pub fn add_requested<'a>(
    requested: &mut Vec<(usize, bool)>,
    model: &OnnxModel,
    outputs: impl Iterator<Item = RequestedOutput<'a>>,
) -> Result<(), PluginFault> {
    for output in outputs {
        let at = requested_position(&model.name, &model.plan.outputs, output)?;
        if !requested.iter().any(|(other, _)| *other == at) {
            requested.push((at, false));
        }
    }
    Ok(())
}

/// An output as a run of `rows` rows has returned it, and its number of elements.
///
/// # Errors
/// The output is not what file and configuration say; the text is complete.
pub fn returned_output<'a>(
    model: &OnnxModel,
    slot: &'a TensorSlot,
    rows: usize,
    value: &OnnxValue,
    buffer: &'a mut [i64; MAX_RANK],
) -> Result<(OutputTensor<'a>, usize), PluginFault> {
    let within = |fault: PluginFault| {
        fault.within(format_args!("model '{}', output '{}'", model.name, slot.name))
    };
    let (kind, rank) = value.describe(buffer).map_err(within)?;
    if kind != slot.dtype {
        return Err(within(PluginFault::internal(format!(
            "the model returned {} instead of {}",
            type_name(kind),
            type_name(slot.dtype)
        ))));
    }
    let rows = model.plan.batching.then_some(rows);
    let shape = output_shape(slot, rows, buffer, rank)
        .map_err(within)
        .inspect_err(|fault| model.findings.stop_merging(&model.log, fault))?;
    model.findings.check_shape(&model.log, (&model.name, slot), shape)?;
    let output = OutputTensor { name: &slot.name, kind: Dtype::from_abi(kind), shape };
    Ok((output, element_count(shape).unwrap_or(0)))
}

impl RunScratch {
    /// As [`add_requested`].
    pub fn add_requested<'a>(
        &mut self,
        model: &OnnxModel,
        outputs: impl Iterator<Item = RequestedOutput<'a>>,
    ) -> Result<(), PluginFault> {
        add_requested(&mut self.requested, model, outputs)
    }

    /// Prepares the requested outputs of a run of `rows` rows: a block of the host where the shape
    /// is known and `preallocate` is set, else memory of the library. True = at least one block.
    pub fn prepare_outputs(
        &mut self,
        model: &OnnxModel,
        rows: usize,
        outlet: &mut impl OutputOutlet,
        preallocate: bool,
    ) -> Result<bool, PluginFault> {
        let TensorPlan { outputs, batching, .. } = &model.plan;
        let mut blocks = false;
        for nth in 0..self.requested.len() {
            let slot = &outputs[self.requested[nth].0];
            let mut raw = ptr::null_mut();
            let mut buffer = [0; MAX_RANK];
            let rows = batching.then_some(rows);
            let known = if preallocate { shape::before_run(slot, rows, &mut buffer) } else { None };
            if let Some((shape, bytes)) = known {
                let kind = Dtype::from_abi(slot.dtype);
                let (data, n) =
                    outlet.block(OutputTensor { name: &slot.name, kind, shape }, bytes)?;
                if n >= bytes && !data.is_null() {
                    // SAFETY: the block is exclusive until the response is sent, aligned to 64
                    // bytes; the value over it is dropped in `clear_outputs`.
                    let value = unsafe {
                        OnnxValue::over(
                            model.session.runtime,
                            slot.handle.element,
                            shape,
                            data,
                            bytes,
                        )?
                    };
                    raw = value.as_ptr();
                    self.outputs.push(value);
                }
            }
            blocks |= !raw.is_null();
            self.output_names.push(slot.handle.c_name.as_ptr());
            self.output_values.push(raw);
            self.requested[nth].1 = !raw.is_null();
        }
        Ok(blocks)
    }

    /// Passes outputs allocated by the library to the host. Outputs in blocks of the host are
    /// complete.
    pub fn pass_outputs(
        &mut self,
        model: &OnnxModel,
        rows: usize,
        outlet: &mut impl OutputOutlet,
    ) -> Result<(), PluginFault> {
        for nth in 0..self.requested.len() {
            let (at, block) = self.requested[nth];
            if block {
                continue;
            }
            let raw = std::mem::replace(&mut self.output_values[nth], ptr::null_mut());
            // SAFETY: allocated by the run, and removed from the list of values to free.
            let value = unsafe { OnnxValue::from_raw(model.session.runtime, raw)? };
            let slot = &model.plan.outputs[at];
            let mut buffer = [0; MAX_RANK];
            let (output, count) = returned_output(model, slot, rows, &value, &mut buffer)?;
            self.pass_output(slot, output, count, outlet, value).map_err(|fault| {
                fault.within(format_args!("model '{}', output '{}'", model.name, slot.name))
            })?;
        }
        Ok(())
    }

    fn pass_output(
        &mut self,
        slot: &TensorSlot,
        output: OutputTensor<'_>,
        count: usize,
        outlet: &mut impl OutputOutlet,
        value: OnnxValue,
    ) -> Result<(), PluginFault> {
        if slot.dtype == dtype::STRING {
            return strings::pass_strings(&value, count, output, outlet, &mut self.offsets);
        }
        let bytes = count * type_size(slot.dtype);
        let data = if bytes == 0 { ptr::null_mut() } else { value.data()? };
        if self.borrowed.iter().any(|range| range.contains(&data.addr())) {
            // For an input passed through as an output the library shares the input's memory, which
            // the host releases with the request.
            let (to, n) = outlet.block(output, bytes)?;
            if !to.is_null() && n >= bytes {
                // SAFETY: `bytes` bytes of a live tensor; the host's new block does not overlap.
                unsafe { ptr::copy_nonoverlapping(data, to, bytes) };
            }
            return Ok(());
        }
        let release = value::release_value;
        let memory =
            MemoryDonation { data, bytes, memory: Memory::CPU, release, owner: value.into_raw() };
        // SAFETY: the memory belongs to the value, which lives until the host releases it.
        unsafe { Ok(outlet.donate(output, memory)?) }
    }
}
