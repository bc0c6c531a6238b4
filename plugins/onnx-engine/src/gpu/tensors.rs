//! Inputs and outputs of a run on a GPU, bound to the session where they are.
//!
//! A tensor that a node on the CPU reads or writes is in CPU memory: strings, shapes, and what
//! operators without a kernel for the GPU use. Which these are, the session says.

use super::session::GpuSession;
use super::wait_for_stream;
use crate::check::TensorSlot;
use crate::model::OnnxModel;
use crate::outputs::{add_requested, returned_output};
use crate::strings;
use crate::value::{self, OnnxValue};
use std::ops::Range;
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::{InputBlocks, InputClaims};
use trtserver_framework::outlet::{MemoryDonation, OutputOutlet, OutputTensor};
use trtserver_framework::shape::{self, MAX_RANK};
use trtserver_framework::types::type_size;
use trtserver_plugin_api::abi::types::{dtype, memory_type};
use trtserver_plugin_api::author::{
    Batch, Buf, Device, Dtype, Memory, Request, Tensor, wait_ready,
};

#[derive(Default)]
pub struct BoundTensors {
    /// Values over memory of the host, kept until the run has queued its work.
    values: Vec<OnnxValue>,
    /// Position of each requested output in the plan, and whether it is in a block of the host.
    pub requested: Vec<(usize, bool)>,
    claims: InputClaims,
    /// Inputs that the CPU reads.
    blocks: InputBlocks,
    offsets: Vec<usize>,
    /// Addresses of inputs.
    borrowed: Vec<Range<usize>>,
    /// Which requests of the batch have failed.
    pub failed: Vec<bool>,
}

/// Where the elements of an input are.
struct InputPlace {
    data: *mut u8,
    bytes: usize,
    on_device: bool,
}

impl BoundTensors {
    pub fn clear(&mut self, session: &mut GpuSession) {
        session.binding.clear_inputs();
        self.clear_outputs(session);
        self.values.clear();
        self.borrowed.clear();
        self.blocks.trim();
    }

    pub fn clear_outputs(&mut self, session: &mut GpuSession) {
        session.binding.clear_outputs();
        self.requested.clear();
    }

    /// Binds the inputs of a request, which are validated first.
    pub fn bind_inputs(
        &mut self,
        session: &mut GpuSession,
        request: Request<'_>,
        device: &Device,
    ) -> Result<(), PluginFault> {
        self.claims.begin(session.model.plan.inputs.len());
        for (nth, tensor) in request.inputs().enumerate() {
            let at = self.claims.claim(&session.model.name, &session.model.plan.inputs, tensor)?;
            let place = self.place_input(tensor, nth, session.inputs_on_device[at], device)?;
            self.bind_input(session, at, tensor.dtype(), tensor.shape(), place)?;
        }
        self.check_claims(&session.model)
    }

    /// Binds the gathered inputs of a batch, and lists the outputs that any request requested.
    pub fn bind_gathered(
        &mut self,
        session: &mut GpuSession,
        batch: &Batch<'_>,
        memory: Memory,
    ) -> Result<(), PluginFault> {
        self.claims.begin(session.model.plan.inputs.len());
        let Some(first) = batch.requests().next() else { return Ok(()) };
        for (nth, tensor) in first.inputs().enumerate() {
            let at = self.claims.claim(&session.model.name, &session.model.plan.inputs, tensor)?;
            let on_device = session.inputs_on_device[at];
            let memory = if on_device { memory } else { Memory::CPU };
            let block = batch.gather_buf(nth, memory, None)?;
            let shape = batch.gathered_shape(nth);
            let place = InputPlace { data: block.ptr, bytes: block.bytes as usize, on_device };
            self.bind_input(session, at, tensor.dtype(), &shape, place)?;
        }
        self.check_claims(&session.model)?;
        for (nth, request) in batch.requests().enumerate() {
            if !self.failed[nth] {
                add_requested(&mut self.requested, &session.model, request.requested_outputs())?;
            }
        }
        Ok(())
    }

    fn check_claims(&self, model: &OnnxModel) -> Result<(), PluginFault> {
        self.claims.check_complete(&model.name, &model.plan.inputs, |slot| model.requires(slot))
    }

    /// Where the elements of a request's input are; for a node on the CPU they are copied there.
    fn place_input(
        &mut self,
        tensor: Tensor<'_>,
        nth: usize,
        on_device: bool,
        device: &Device,
    ) -> Result<InputPlace, PluginFault> {
        let bytes = tensor.byte_size();
        if bytes == 0 {
            return Ok(InputPlace { data: ptr::null_mut(), bytes, on_device });
        }
        match tensor.raw_parts() {
            [part] if part.memory == device.memory() => {
                if on_device {
                    return Ok(InputPlace { data: part.ptr, bytes, on_device });
                }
                let data = self.blocks.block(nth, bytes);
                // SAFETY: the part is an input of the request, the block has its size.
                unsafe { download_input(device, part, data, bytes)? };
                Ok(InputPlace { data, bytes, on_device })
            }
            // Strings; others only if the session reads them on the CPU.
            parts if parts.iter().all(|part| part.memory.memory_type != memory_type::GPU) => {
                let data = self.blocks.gather(tensor, nth)?;
                Ok(InputPlace { data, bytes, on_device: false })
            }
            _ => Err(PluginFault::internal(format!(
                "input '{}' is neither in CPU memory nor in one block of the instance's GPU",
                tensor.name()
            ))),
        }
    }

    fn bind_input(
        &mut self,
        session: &mut GpuSession,
        at: usize,
        kind: Dtype,
        shape: &[i64],
        place: InputPlace,
    ) -> Result<(), PluginFault> {
        let (model, runtime) = (&session.model, session.model.session.runtime);
        let slot = &model.plan.inputs[at];
        let mut buffer = [0; MAX_RANK];
        let InputPlace { data, bytes, on_device } = place;
        let shape = model.accepted(slot, kind.to_abi(), shape, bytes, &mut buffer)?;
        let value = if slot.dtype == dtype::STRING {
            let data = match bytes {
                0 => &[][..],
                // SAFETY: CPU memory of this size: the host leaves strings there.
                _ => unsafe { std::slice::from_raw_parts(data, bytes) },
            };
            strings::decode_strings(runtime, &slot.name, shape, data)?
        } else {
            self.borrowed.push(data.addr()..data.addr() + bytes);
            let memory = if on_device { session.memory() } else { runtime.memory.cast_const() };
            // SAFETY: the host's memory is valid until the work on the stream is done, that of a
            // block until `clear`; both are aligned. The library only reads inputs.
            unsafe { OnnxValue::over_in(runtime, memory, slot.handle.element, shape, data, bytes)? }
        };
        session.binding.input(&slot.handle.c_name, &value)?;
        self.values.push(value);
        Ok(())
    }

    /// Binds the requested outputs of a run of `rows` rows: to a block of the host in device memory
    /// where the shape is known and `preallocate` is set, else to memory of the library, on the
    /// device or, for a node on the CPU, there.
    pub fn prepare_outputs(
        &mut self,
        session: &mut GpuSession,
        rows: usize,
        outlet: &mut impl OutputOutlet,
        memory: Memory,
        preallocate: bool,
    ) -> Result<(), PluginFault> {
        let on_gpu = session.memory();
        let GpuSession { binding, model, outputs_on_device, .. } = session;
        let runtime = model.session.runtime;
        let rows = model.plan.batching.then_some(rows);
        for (at, in_block) in &mut self.requested {
            let slot = &model.plan.outputs[*at];
            let (name, on_device) = (&slot.handle.c_name, outputs_on_device[*at]);
            let mut buffer = [0; MAX_RANK];
            let known = if preallocate && on_device {
                shape::before_run(slot, rows, &mut buffer)
            } else {
                None
            };
            if let Some((shape, bytes)) = known {
                let kind = Dtype::from_abi(slot.dtype);
                let output = OutputTensor { name: &slot.name, kind, shape };
                let block = outlet.block_in(output, bytes, memory)?;
                if block.memory == memory && block.bytes as usize >= bytes {
                    // SAFETY: the block is exclusive until the response is sent, behind the work on
                    // the stream, and aligned.
                    let value = unsafe {
                        let element = slot.handle.element;
                        OnnxValue::over_in(runtime, on_gpu, element, shape, block.ptr, bytes)?
                    };
                    binding.output(name, &value)?;
                    self.values.push(value);
                    *in_block = true;
                    continue;
                }
            }
            binding
                .output_in(name, if on_device { on_gpu } else { runtime.memory.cast_const() })?;
        }
        Ok(())
    }

    /// Passes outputs in memory of the library to the host. Outputs in blocks of the host are
    /// complete.
    pub fn pass_outputs(
        &mut self,
        session: &GpuSession,
        rows: usize,
        outlet: &mut impl OutputOutlet,
        device: &Device,
    ) -> Result<(), PluginFault> {
        if self.requested.iter().all(|(_, in_block)| *in_block) {
            return Ok(());
        }
        let values = session.binding.outputs()?;
        let requested = std::mem::take(&mut self.requested);
        for ((at, in_block), value) in requested.iter().zip(values) {
            if *in_block {
                continue;
            }
            let slot = &session.model.plan.outputs[*at];
            let on_device = session.outputs_on_device[*at];
            let mut buffer = [0; MAX_RANK];
            let (output, count) = returned_output(&session.model, slot, rows, &value, &mut buffer)?;
            self.pass_output(slot, (output, count), outlet, device, value, on_device).map_err(
                |fault| {
                    fault.within(format_args!(
                        "model '{}', output '{}'",
                        session.model.name, slot.name
                    ))
                },
            )?;
        }
        self.requested = requested;
        Ok(())
    }

    fn pass_output(
        &mut self,
        slot: &TensorSlot,
        (output, count): (OutputTensor<'_>, usize),
        outlet: &mut impl OutputOutlet,
        device: &Device,
        value: OnnxValue,
        on_device: bool,
    ) -> Result<(), PluginFault> {
        if slot.dtype == dtype::STRING {
            return strings::pass_strings(&value, count, output, outlet, &mut self.offsets);
        }
        let bytes = count * type_size(slot.dtype);
        let data = if bytes == 0 { ptr::null_mut() } else { value.data()? };
        let memory = if on_device && bytes > 0 { device.memory() } else { Memory::CPU };
        if self.borrowed.iter().any(|range| range.contains(&data.addr())) {
            // The graph passes on an input, whose memory the host reuses.
            let block = outlet.block_in(output, bytes, memory)?;
            if block.bytes as usize >= bytes && !block.ptr.is_null() {
                let stream = on_device.then(|| device.stream());
                // SAFETY: both have this size; the input is valid until the work on the stream is
                // done.
                unsafe { device.copy((block.ptr, block.memory), (data, memory), bytes, stream)? };
            }
            return Ok(());
        }
        let release = value::release_value;
        let memory = MemoryDonation { data, bytes, memory, release, owner: value.into_raw() };
        // SAFETY: the memory belongs to the value, which lives until the host releases it, behind
        // the work that reads it.
        unsafe { Ok(outlet.donate(output, memory)?) }
    }
}

/// Copies an input from the device, and waits for it.
///
/// # Safety
/// The part is memory of the host, `to` has `bytes` bytes.
pub unsafe fn download_input(
    device: &Device,
    part: &Buf,
    to: *mut u8,
    bytes: usize,
) -> Result<(), PluginFault> {
    // SAFETY: by the caller's promise.
    unsafe { wait_ready(device, part, device.copy_in())? };
    wait_for_stream(device, device.copy_in())?;
    // SAFETY: by the caller's promise; the part is written.
    unsafe { Ok(device.copy((to, Memory::CPU), (part.ptr, part.memory), bytes, None)?) }
}
