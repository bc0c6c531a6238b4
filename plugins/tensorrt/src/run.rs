//! One run of an engine: shapes and addresses are set, outputs allocated, the run queued.

use crate::buffers::{copy_memory, is_aligned};
use crate::callbacks::logger;
use crate::callbacks::outputs::OutputAllocator;
use crate::instance::{ProfileContext, TensorRtInstance};
use crate::model::LoadedPlan;
use crate::outlet::{InputSource, adopt_memory, shape_bytes};
use crate::vtable::TensorShape;
use std::sync::Arc;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::outlet::{OutputOutlet, OutputTensor, output_shape};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::shape_text;
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_api::author::{Batch, Device, Dtype, Error, Memory, Request, Scope};

/// Why a run did not happen.
#[derive(Debug)]
pub enum RunFailure {
    /// Before anything was queued: another combination of requests may succeed.
    Input(PluginFault),
    Run(PluginFault),
}

impl RunFailure {
    pub fn is_input(&self) -> bool {
        matches!(self, RunFailure::Input(_))
    }

    pub fn into_error(self) -> Error {
        let (RunFailure::Input(fault) | RunFailure::Run(fault)) = self;
        fault.into()
    }

    /// TensorRT's reason for the failure of a run.
    pub fn from_reason(reason: String) -> RunFailure {
        RunFailure::Run(match logger::take_exhausted() {
            true => PluginFault { code: code::EXHAUSTED, text: reason },
            false => PluginFault::internal(reason),
        })
    }

    fn from_error(error: Error) -> RunFailure {
        RunFailure::Run(error.into())
    }
}

impl TensorRtInstance {
    /// Queues one run for all requests of a batch.
    ///
    /// # Errors
    /// An input is invalid, or the run could not be queued.
    pub fn run_batch(&mut self, batch: &Batch<'_>) -> Result<(), RunFailure> {
        self.run(InputSource::Batch(batch), &mut { batch })
    }

    /// Queues a run for one request of several.
    ///
    /// # Errors
    /// The errors of [`TensorRtInstance::run_batch`].
    pub fn run_request(&mut self, request: Request<'_>) -> Result<(), RunFailure> {
        let mut response = request.new_response().map_err(RunFailure::from_error)?;
        self.run(InputSource::Request(request), &mut response)?;
        response.send().map_err(RunFailure::from_error)
    }

    fn run(
        &mut self,
        source: InputSource<'_, '_>,
        outlet: &mut dyn OutputOutlet,
    ) -> Result<(), RunFailure> {
        logger::clear_errors();
        let model = &self.model.config.model;
        let rows = self.loaded.plan.batching.then(|| source.rows());
        let checked = self.buffers.check_inputs(model, &self.loaded, source, rows);
        checked.map_err(RunFailure::Input)?;
        let chosen = self.choose().map_err(RunFailure::Input)?;
        let located = self.buffers.locate_inputs(&self.loaded, source, &self.device, &self.scope);
        located.map_err(RunFailure::Input)?;
        if self.graphs.is_enabled() && self.run_graph(chosen, rows, outlet)? {
            return Ok(());
        }
        self.set_inputs(chosen)?;
        self.set_outputs(chosen, rows, outlet)?;
        // SAFETY: all tensors have addresses: of the host, ordered by the compute stream, or of
        // this instance.
        unsafe { self.enqueue(chosen, rows) }?;
        for (to, from, bytes) in self.buffers.copies.drain(..) {
            copy_memory(&self.device, to, from, bytes).map_err(RunFailure::from_error)?;
        }
        self.adopt_outputs(chosen, rows, outlet)
    }

    /// Sets shapes that differ from the run before, and all addresses.
    pub fn set_inputs(&mut self, chosen: usize) -> Result<(), RunFailure> {
        let Self { contexts, buffers, loaded, .. } = self;
        let context = &mut contexts[chosen];
        let implicit = loaded.engine.implicit_batch.is_some();
        let (mut changed, mut shape_inputs) = (false, false);
        for (nth, slot) in loaded.plan.inputs.iter().enumerate() {
            let at = buffers.inputs[nth].at.map_or(std::ptr::null_mut(), |at| at.as_ptr());
            if implicit {
                set_binding(&mut buffers.bindings, slot.handle.binding, at)?;
                continue;
            }
            let (name, shape) = (&slot.handle.c_name, buffers.shapes[nth]);
            if context.set[nth] != Some(shape) {
                context.set[nth] = None;
                let set = context.context.set_input_shape(name, shape);
                set.map_err(|reason| input_refused(&slot.name, &shape, &reason))?;
                context.set[nth] = Some(shape);
                changed = true;
            }
            shape_inputs |= slot.handle.is_shape;
            // SAFETY: memory of this input's size, which the host keeps until the run is done.
            let set = unsafe { context.context.set_address(name, at) };
            set.map_err(|reason| input_refused(&slot.name, &shape, &reason))?;
        }
        if shape_inputs {
            context
                .context
                .infer_shapes()
                .map_err(|reason| RunFailure::Input(PluginFault::invalid(reason)))?;
        }
        if !implicit && (changed || shape_inputs) {
            for (shape, slot) in context.outputs.iter_mut().zip(&loaded.plan.outputs) {
                let found = context.context.tensor_shape(&slot.handle.c_name);
                *shape = found.filter(|shape| !shape.dims().contains(&-1));
            }
        }
        Ok(())
    }

    fn set_outputs(
        &mut self,
        chosen: usize,
        rows: Option<usize>,
        outlet: &mut dyn OutputOutlet,
    ) -> Result<(), RunFailure> {
        let Self { contexts, buffers, loaded, device, scope, .. } = self;
        let context = &mut contexts[chosen];
        let implicit = loaded.engine.implicit_batch.is_some();
        buffers.copies.clear();
        for (nth, slot) in loaded.plan.outputs.iter().enumerate() {
            let handle = &slot.handle;
            let Some(shape) = context.output_shape(loaded, nth, rows) else {
                let allocator = prepare_allocator(context, nth, loaded, device, scope);
                allocator.map_err(|reason| RunFailure::Run(PluginFault::internal(reason)))?;
                continue;
            };
            let bytes = shape_bytes(&shape, slot.dtype).ok_or_else(|| {
                let text = format!("output '{}' has the impossible shape {shape:?}", slot.name);
                RunFailure::Run(PluginFault::internal(text))
            })?;
            let mut dims = [0; MAX_RANK];
            let rows = rows.filter(|_| !handle.is_shape);
            let output = describe_output(slot, rows, &shape, &mut dims).map_err(RunFailure::Run)?;
            let memory = if handle.is_shape { Memory::CPU } else { device.memory() };
            let block = outlet.block_in(output, bytes, memory).map_err(RunFailure::from_error)?;
            let mut at = block.ptr;
            if at.is_null() || bytes == 0 {
                let scratch = buffers.scratch(nth, bytes, handle.is_shape, device, scope);
                at = scratch.map_err(RunFailure::from_error)?;
            } else if block.memory != memory {
                let text =
                    format!("output '{}' is not in the memory that the engine writes", slot.name);
                return Err(RunFailure::Run(PluginFault::internal(text)));
            } else if !handle.is_shape && !is_aligned(at) {
                let scratch = buffers.scratch(nth, bytes, false, device, scope);
                let scratch = scratch.map_err(RunFailure::from_error)?;
                buffers.copies.push((at, scratch, bytes));
                at = scratch;
            }
            if implicit {
                set_binding(&mut buffers.bindings, handle.binding, at)?;
            } else {
                // SAFETY: memory of this output's size, kept until the run is done.
                unsafe { context.context.set_address(&handle.c_name, at) }.map_err(|reason| {
                    RunFailure::from_reason(format!("output '{}': {reason}", slot.name))
                })?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// All tensors have addresses that are valid until the run is done.
    pub unsafe fn enqueue(&self, chosen: usize, rows: Option<usize>) -> Result<(), RunFailure> {
        let (context, stream) = (&self.contexts[chosen].context, self.device.stream());
        // SAFETY: by the caller's promise.
        let queued = unsafe {
            match self.loaded.engine.implicit_batch {
                Some(_) => context.enqueue_batch(rows.unwrap_or(1), &self.buffers.bindings, stream),
                None => context.enqueue(stream),
            }
        };
        queued.map_err(|reason| {
            RunFailure::from_reason(format!(
                "model '{}': TensorRT could not run the engine: {reason}",
                self.model.config.model
            ))
        })
    }

    /// Hands over the outputs whose shape the run decided.
    fn adopt_outputs(
        &mut self,
        chosen: usize,
        rows: Option<usize>,
        outlet: &mut dyn OutputOutlet,
    ) -> Result<(), RunFailure> {
        let Self { contexts, loaded, device, .. } = self;
        let context = &mut contexts[chosen];
        if loaded.engine.implicit_batch.is_some() {
            return Ok(());
        }
        let outputs = loaded.plan.outputs.iter().zip(&context.outputs).zip(&mut context.allocators);
        for ((slot, known), allocator) in outputs {
            let (None, Some(allocator)) = (known, allocator) else { continue };
            let (memory, shape) = allocator.take();
            let (Some(memory), Some(shape)) = (memory, shape) else {
                let text = format!("TensorRT gave output '{}' no memory or no shape", slot.name);
                return Err(RunFailure::Run(PluginFault::internal(text)));
            };
            let bytes = shape_bytes(&shape, slot.dtype).filter(|bytes| *bytes <= memory.len());
            let bytes = bytes.ok_or_else(|| {
                let text = format!(
                    "output '{}' of shape {shape:?} has only {} bytes",
                    slot.name,
                    memory.len()
                );
                RunFailure::Run(PluginFault::internal(text))
            })?;
            let written = device.event().and_then(|event| {
                event.record(device.stream())?;
                Ok(event)
            });
            let written = written.map_err(RunFailure::from_error)?;
            let mut dims = [0; MAX_RANK];
            match describe_output(slot, rows, &shape, &mut dims) {
                Ok(output) => {
                    adopt_memory(outlet, output, bytes, memory, written)
                        .map_err(RunFailure::from_error)?;
                }
                Err(fault) => {
                    memory.free_after(written);
                    // Each request by itself may have as many rows as its batch size.
                    return Err(RunFailure::Input(fault));
                }
            }
        }
        Ok(())
    }
}

/// An output as the host takes it.
fn describe_output<'a>(
    slot: &'a trtserver_framework::slot::TensorSlot<crate::tensors::TensorHandle>,
    rows: Option<usize>,
    shape: &TensorShape,
    buffer: &'a mut [i64; MAX_RANK],
) -> Result<OutputTensor<'a>, PluginFault> {
    let rank = shape.dims().len();
    buffer[..rank].copy_from_slice(shape.dims());
    let shape = output_shape(slot, rows, buffer, rank)
        .map_err(|fault| fault.within(format_args!("output '{}'", slot.name)))?;
    Ok(OutputTensor { name: &slot.name, kind: Dtype::from_abi(slot.dtype), shape })
}

/// Makes TensorRT ask for the memory of an output during the run.
fn prepare_allocator(
    context: &mut ProfileContext,
    nth: usize,
    loaded: &Arc<LoadedPlan>,
    device: &Device,
    scope: &Scope,
) -> Result<(), String> {
    if let Some(allocator) = &mut context.allocators[nth] {
        allocator.begin();
        return Ok(());
    }
    let library = loaded.engine.library;
    let (table, layout) = (library.output_allocators, library.slots.dims);
    let allocator = OutputAllocator::new(table, layout, scope, device.memory(), device.stream());
    let allocator = context.allocators[nth].insert(allocator);
    let name = &loaded.plan.outputs[nth].handle.c_name;
    // SAFETY: boxed, and dropped after the context: fields are dropped in their order.
    unsafe { context.context.set_output_allocator(name, allocator) }
}

fn set_binding(bindings: &mut [*mut u8], at: usize, to: *mut u8) -> Result<(), RunFailure> {
    match bindings.get_mut(at) {
        Some(binding) => {
            *binding = to;
            Ok(())
        }
        None => {
            Err(RunFailure::Run(PluginFault::internal(format!("the engine has no binding {at}"))))
        }
    }
}

fn input_refused(name: &str, shape: &TensorShape, reason: &str) -> RunFailure {
    let shape = shape_text(shape.dims());
    RunFailure::Input(PluginFault::invalid(format!("input '{name}' of shape {shape}: {reason}")))
}
