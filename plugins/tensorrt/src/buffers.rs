//! What an instance keeps from run to run: its inputs as found in a batch, and memory for tensors
//! that the host has nowhere suitable.

use crate::model::LoadedPlan;
use crate::outlet::InputSource;
use crate::vtable::TensorShape;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::{InputClaims, accept_shape};
use trtserver_framework::shape::MAX_RANK;
use trtserver_plugin_api::author::{Device, Error, HostMemory, Scope};

/// TensorRT takes device memory at multiples of this alone.
const ALIGN: usize = 256;

/// What an instance reuses from run to run.
pub struct RunBuffers {
    claims: InputClaims,
    /// In the order of the plan's inputs.
    pub inputs: Vec<InputBuffer>,
    pub shapes: Vec<TensorShape>,
    /// Addresses by binding, for engines with implicit batch dimension.
    pub bindings: Vec<*mut u8>,
    /// For outputs that no request asked for, in the order of the plan's outputs.
    scratch: Vec<Option<HostMemory>>,
    host_scratch: Vec<Vec<u64>>,
    /// For inputs that the host has at an address that TensorRT does not take, in the order of the
    /// plan's inputs.
    aligned: Vec<Option<HostMemory>>,
    /// Outputs to be copied to where the host wants them: destination, source, bytes.
    pub copies: Vec<(*mut u8, *mut u8, usize)>,
    /// The address of tensors without elements: TensorRT refuses null.
    pub empty: HostMemory,
}

/// An input of a run.
#[derive(Clone, Copy, Default)]
pub struct InputBuffer {
    /// Position in the request.
    position: usize,
    pub at: Option<std::ptr::NonNull<u8>>,
    pub bytes: usize,
}

impl RunBuffers {
    pub fn new(loaded: &LoadedPlan, device: &Device, scope: &Scope) -> Result<Self, Error> {
        let (inputs, outputs) = (loaded.plan.inputs.len(), loaded.plan.outputs.len());
        Ok(Self {
            claims: InputClaims::default(),
            inputs: vec![InputBuffer::default(); inputs],
            shapes: vec![TensorShape::default(); inputs],
            bindings: vec![std::ptr::null_mut(); loaded.engine.bindings],
            scratch: (0..outputs).map(|_| None).collect(),
            host_scratch: vec![Vec::new(); outputs],
            aligned: (0..inputs).map(|_| None).collect(),
            copies: Vec::new(),
            empty: scope.allocate(device.memory(), 256, 0)?,
        })
    }

    /// Checks the inputs of a run, and notes their positions and shapes for the engine.
    pub fn check_inputs(
        &mut self,
        model: &str,
        loaded: &LoadedPlan,
        source: InputSource<'_, '_>,
        rows: Option<usize>,
    ) -> Result<(), PluginFault> {
        let slots = &loaded.plan.inputs;
        let first = source.first().ok_or_else(|| PluginFault::internal("the batch is empty"))?;
        self.claims.begin(slots.len());
        for (position, tensor) in first.inputs().enumerate() {
            let at = self.claims.claim(model, slots, tensor)?;
            let slot = &slots[at];
            let rows = rows.filter(|_| !slot.handle.is_shape);
            let (kind, given, bytes) =
                (tensor.dtype().to_abi(), tensor.shape(), tensor.byte_size());
            let mut buffer = [0; MAX_RANK];
            let shape = accept_shape(model, slot, rows.is_some(), kind, given, bytes, &mut buffer)?;
            let shape = TensorShape::new(shape).ok_or_else(|| {
                PluginFault::invalid(format!(
                    "input '{}' for model '{model}' has {} dimensions, TensorRT allows 8",
                    slot.name,
                    shape.len()
                ))
            })?;
            self.shapes[at] = shape.with_rows(rows);
            self.inputs[at] = InputBuffer { position, at: None, bytes: 0 };
            if slot.handle.is_shape {
                self.inputs[at].at = tensor
                    .contiguous()
                    .map(|bytes| bytes.as_ptr().cast_mut())
                    .and_then(std::ptr::NonNull::new);
            }
        }
        self.claims.check_complete(model, slots, |_| true)
    }

    /// Finds the inputs in the memory of the device.
    pub fn locate_inputs(
        &mut self,
        loaded: &LoadedPlan,
        source: InputSource<'_, '_>,
        device: &Device,
        scope: &Scope,
    ) -> Result<(), PluginFault> {
        let Some(first) = source.first() else { return Ok(()) };
        let memory = device.memory();
        let inputs = self.inputs.iter_mut().zip(&mut self.aligned);
        for (slot, (input, aligned)) in loaded.plan.inputs.iter().zip(inputs) {
            if slot.handle.is_shape {
                continue;
            }
            let Some(tensor) = first.inputs().nth(input.position) else { continue };
            let block = source.input(input.position, tensor, memory)?;
            input.at = std::ptr::NonNull::new(block.ptr);
            input.bytes = block.bytes as usize;
            if input.at.is_none() || input.bytes == 0 {
                input.at = std::ptr::NonNull::new(self.empty.as_ptr());
            } else if !is_aligned(block.ptr) {
                let to = grow_buffer(aligned, input.bytes, device, scope)?;
                copy_memory(device, to, block.ptr, input.bytes)?;
                input.at = std::ptr::NonNull::new(to);
            }
        }
        Ok(())
    }

    /// Memory for an output that no request asked for.
    pub fn scratch(
        &mut self,
        nth: usize,
        bytes: usize,
        is_shape: bool,
        device: &Device,
        scope: &Scope,
    ) -> Result<*mut u8, Error> {
        if is_shape {
            let block = &mut self.host_scratch[nth];
            block.resize(block.len().max(bytes.div_ceil(8)).max(1), 0);
            return Ok(block.as_mut_ptr().cast());
        }
        if bytes == 0 {
            return Ok(self.empty.as_ptr());
        }
        grow_buffer(&mut self.scratch[nth], bytes, device, scope)
    }
}

/// Device memory of at least this size, kept from run to run.
fn grow_buffer(
    block: &mut Option<HostMemory>,
    bytes: usize,
    device: &Device,
    scope: &Scope,
) -> Result<*mut u8, Error> {
    if block.as_ref().is_none_or(|block| block.len() < bytes) {
        if let Some(small) = block.take() {
            free_behind(device, small)?;
        }
        let stream = Some(device.stream());
        *block = Some(scope.allocate_for(device.memory(), bytes, 0, stream)?);
    }
    Ok(block.as_ref().map_or(std::ptr::null_mut(), HostMemory::as_ptr))
}

/// Frees memory once the work is done that was queued so far.
pub fn free_behind(device: &Device, memory: HostMemory) -> Result<(), Error> {
    let event = device.event()?;
    event.record(device.stream())?;
    memory.free_after(event);
    Ok(())
}

pub fn is_aligned(at: *mut u8) -> bool {
    at.addr().is_multiple_of(ALIGN)
}

/// Queues a copy on the device.
pub fn copy_memory(device: &Device, to: *mut u8, from: *mut u8, bytes: usize) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let memory = device.memory();
    // SAFETY: both are memory of the device of at least that size, used in the order of its compute
    // stream.
    unsafe { device.copy((to, memory), (from, memory), bytes, Some(device.stream())) }
}
