//! Passes the outputs of a session with fixed memory to the host.

use super::fixed_block::{FixedBlock, InputSource, copy_bytes, shape_of};
use super::fixed_session::FixedSession;
use crate::outputs::returned_output;
use crate::value::{self, OnnxValue};
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::outlet::{MemoryDonation, OutputOutlet, OutputTensor};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::type_size;
use trtserver_plugin_api::abi::types::memory_type;
use trtserver_plugin_api::author::{Device, Dtype, Memory};

impl FixedSession {
    /// Passes the first `rows` rows of the requested outputs to the host, which reads them behind
    /// the work on the compute stream.
    pub fn pass_outputs(
        &mut self,
        rows: usize,
        requested: &[(usize, bool)],
        outlet: &mut impl OutputOutlet,
        device: &Device,
    ) -> Result<(), PluginFault> {
        let allocated = requested.iter().any(|(at, _)| self.outputs[*at].is_none());
        let mut values: Vec<_> = if allocated {
            self.session.binding.outputs()?.into_iter().map(Some).collect()
        } else {
            Vec::new()
        };
        for (at, _) in requested {
            let at = *at;
            let within = |fault: PluginFault| {
                let model = &self.session.model;
                fault.within(format_args!(
                    "model '{}', output '{}'",
                    model.name, model.plan.outputs[at].name
                ))
            };
            if let Some(block) = &self.outputs[at] {
                self.copy_output(at, block, rows, outlet, device).map_err(within)?;
            } else if let Some(value) = values.get_mut(at).and_then(Option::take) {
                self.pass_value(at, value, rows, outlet, device)?;
            }
        }
        Ok(())
    }

    fn copy_output(
        &self,
        at: usize,
        block: &FixedBlock,
        rows: usize,
        outlet: &mut impl OutputOutlet,
        device: &Device,
    ) -> Result<(), PluginFault> {
        let slot = &self.session.model.plan.outputs[at];
        let shape = self.shape(&block.dims, rows);
        let bytes = block.row_bytes * rows;
        let output =
            OutputTensor { name: &slot.name, kind: Dtype::from_abi(slot.dtype), shape: &shape };
        let from = InputSource { data: block.data, bytes, memory: block.memory };
        copy_to_host(output, from, outlet, device)
    }

    /// Passes rows of an output that the library has allocated.
    fn pass_value(
        &self,
        at: usize,
        value: OnnxValue,
        rows: usize,
        outlet: &mut impl OutputOutlet,
        device: &Device,
    ) -> Result<(), PluginFault> {
        let model = &self.session.model;
        let (slot, mut buffer) = (&model.plan.outputs[at], [0; MAX_RANK]);
        let (output, count) = returned_output(model, slot, self.rows, &value, &mut buffer)?;
        let mut shape = output.shape.to_vec();
        let mut count = count;
        if model.plan.batching {
            count = count / self.rows * rows;
            if let Some(first) = shape.first_mut() {
                *first = i64::try_from(rows).unwrap_or(i64::MAX);
            }
        }
        let output = OutputTensor { shape: &shape, ..output };
        let bytes = count * type_size(slot.dtype);
        let data = if bytes == 0 { ptr::null_mut() } else { value.data()? };
        let on_device = self.session.outputs_on_device[at] && bytes > 0;
        let memory = if on_device { device.memory() } else { Memory::CPU };
        let is_input = |block: &FixedBlock| {
            (block.data.addr()..block.data.addr() + block.bytes).contains(&data.addr())
        };
        if self.inputs.iter().any(is_input) {
            // The graph passes on an input, whose block the next run overwrites.
            return copy_to_host(output, InputSource { data, bytes, memory }, outlet, device);
        }
        let release = value::release_value;
        let memory = MemoryDonation { data, bytes, memory, release, owner: value.into_raw() };
        // SAFETY: the memory belongs to the value, which lives until the host releases it, behind
        // the work that reads it.
        unsafe { Ok(outlet.donate(output, memory)?) }
    }

    fn shape(&self, dims: &[i64], rows: usize) -> Vec<i64> {
        shape_of(dims, rows, self.session.model.plan.batching)
    }
}

/// Copies a tensor into memory of the host, behind the work on the compute stream.
fn copy_to_host(
    output: OutputTensor<'_>,
    from: InputSource,
    outlet: &mut impl OutputOutlet,
    device: &Device,
) -> Result<(), PluginFault> {
    let block = outlet.block_in(output, from.bytes, from.memory)?;
    if block.ptr.is_null() || (block.bytes as usize) < from.bytes || from.bytes == 0 {
        return Ok(());
    }
    // Memory of the CPU is read as soon as the response is sent.
    let on_device = block.memory.memory_type == memory_type::GPU;
    let stream = on_device.then(|| device.stream());
    // SAFETY: both have this size. The source is overwritten by work on the same stream, or on the
    // CPU once the run of the next batch begins.
    unsafe {
        let to = (block.ptr, block.memory);
        copy_bytes(device, to, (from.data, from.memory), from.bytes, stream)
    }
}
