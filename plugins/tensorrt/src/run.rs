//! One run of an engine: inputs checked and located, a profile chosen, shapes and addresses set, outputs allocated.

use crate::callbacks::logger;
use crate::callbacks::outputs::OutputAllocator;
use crate::instance::{ProfileContext, TensorRtInstance};
use crate::model::Loaded;
use crate::outlet::{Source, Target, bytes_of};
use crate::profile::{Range, nearest};
use crate::types;
use crate::vtable::Shape;
use std::sync::Arc;
use trtserver_framework::fault::Fault;
use trtserver_framework::inputs::{Claims, accepted};
use trtserver_framework::outlet::{Output, output_shape};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::shape_text;
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_api::author::{
    Batch, Device, Dtype, Error, HostMemory, Memory, Request, Scope,
};

/// TensorRT takes device memory at multiples of this alone.
const ALIGN: usize = 256;

/// Why a run did not happen.
#[derive(Debug)]
pub enum Failed {
    /// Before anything was queued: another combination of requests may succeed.
    Input(Fault),
    Run(Fault),
}

impl Failed {
    pub fn is_input(&self) -> bool {
        matches!(self, Failed::Input(_))
    }

    pub fn into_error(self) -> Error {
        let (Failed::Input(fault) | Failed::Run(fault)) = self;
        fault.into()
    }

    /// TensorRT's reason for the failure of a run.
    pub fn of_run(reason: String) -> Failed {
        Failed::Run(match logger::take_exhausted() {
            true => Fault { code: code::EXHAUSTED, text: reason },
            false => Fault::internal(reason),
        })
    }

    fn of_error(error: Error) -> Failed {
        Failed::Run(error.into())
    }
}

/// What an instance reuses from run to run.
pub struct Buffers {
    claims: Claims,
    /// In the order of the plan's inputs.
    pub inputs: Vec<Input>,
    pub shapes: Vec<Shape>,
    /// Addresses by binding, for engines with implicit batch dimension.
    pub bindings: Vec<*mut u8>,
    /// For outputs that no request asked for, in the order of the plan's outputs.
    scratch: Vec<Option<HostMemory>>,
    host_scratch: Vec<Vec<u64>>,
    /// For inputs that the host has at an address that TensorRT does not take, in the order of the plan's inputs.
    aligned: Vec<Option<HostMemory>>,
    /// Outputs to be copied to where the host wants them: destination, source, bytes.
    copies: Vec<(*mut u8, *mut u8, usize)>,
    /// The address of tensors without elements: TensorRT refuses null.
    pub empty: HostMemory,
}

/// An input of a run.
#[derive(Clone, Copy, Default)]
pub struct Input {
    /// Position in the request.
    position: usize,
    pub at: Option<std::ptr::NonNull<u8>>,
    pub bytes: usize,
}

impl Buffers {
    pub fn new(loaded: &Loaded, device: &Device, scope: &Scope) -> Result<Self, Error> {
        let (inputs, outputs) = (loaded.plan.inputs.len(), loaded.plan.outputs.len());
        Ok(Self {
            claims: Claims::default(),
            inputs: vec![Input::default(); inputs],
            shapes: vec![Shape::default(); inputs],
            bindings: vec![std::ptr::null_mut(); loaded.engine.bindings],
            scratch: (0..outputs).map(|_| None).collect(),
            host_scratch: vec![Vec::new(); outputs],
            aligned: (0..inputs).map(|_| None).collect(),
            copies: Vec::new(),
            empty: scope.allocate(device.memory(), 256, 0)?,
        })
    }

    /// Checks the inputs of a run, and notes their positions and shapes for the engine.
    fn check_inputs(
        &mut self,
        model: &str,
        loaded: &Loaded,
        source: Source<'_, '_>,
        rows: Option<usize>,
    ) -> Result<(), Fault> {
        let slots = &loaded.plan.inputs;
        let first = source.first().ok_or_else(|| Fault::internal("the batch is empty"))?;
        self.claims.begin(slots.len());
        for (position, tensor) in first.inputs().enumerate() {
            let at = self.claims.claim(model, slots, tensor)?;
            let slot = &slots[at];
            let rows = rows.filter(|_| !slot.handle.is_shape);
            let (kind, given, bytes) =
                (tensor.dtype().to_abi(), tensor.shape(), tensor.byte_size());
            let mut buffer = [0; MAX_RANK];
            let shape = accepted(model, slot, rows.is_some(), kind, given, bytes, &mut buffer)?;
            let mut shape = Shape::new(shape).ok_or_else(|| {
                Fault::invalid(format!(
                    "input '{}' for model '{model}' has {} dimensions, TensorRT allows 8",
                    slot.name,
                    shape.len()
                ))
            })?;
            if let (Some(rows), Some(first)) = (rows, shape.dims_mut().first_mut()) {
                *first = rows as i64;
            }
            self.shapes[at] = shape;
            self.inputs[at] = Input { position, at: None, bytes: 0 };
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
    fn locate_inputs(
        &mut self,
        loaded: &Loaded,
        source: Source<'_, '_>,
        device: &Device,
        scope: &Scope,
    ) -> Result<(), Fault> {
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
                let to = grown(aligned, input.bytes, device, scope)?;
                copy(device, to, block.ptr, input.bytes)?;
                input.at = std::ptr::NonNull::new(to);
            }
        }
        Ok(())
    }

    /// Memory for an output that no request asked for.
    fn scratch(
        &mut self,
        nth: usize,
        bytes: usize,
        on_host: bool,
        device: &Device,
        scope: &Scope,
    ) -> Result<*mut u8, Error> {
        if on_host {
            let block = &mut self.host_scratch[nth];
            block.resize(block.len().max(bytes.div_ceil(8)).max(1), 0);
            return Ok(block.as_mut_ptr().cast());
        }
        if bytes == 0 {
            return Ok(self.empty.as_ptr());
        }
        grown(&mut self.scratch[nth], bytes, device, scope)
    }
}

/// Device memory of at least this size, kept from run to run.
fn grown(
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

fn is_aligned(at: *mut u8) -> bool {
    at.addr().is_multiple_of(ALIGN)
}

/// Queues a copy on the device.
pub fn copy(device: &Device, to: *mut u8, from: *mut u8, bytes: usize) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let memory = device.memory();
    // SAFETY: both are memory of the device of at least that size, used in the order of its compute stream.
    unsafe { device.copy((to, memory), (from, memory), bytes, Some(device.stream())) }
}

impl TensorRtInstance {
    /// Queues one run for all requests of a batch.
    ///
    /// # Errors
    /// An input is invalid, or the run could not be queued.
    pub fn run_batch(&mut self, batch: &Batch<'_>) -> Result<(), Failed> {
        self.run(Source::Batch(batch), &mut Target::Batch(batch))
    }

    /// Queues a run for one request of several.
    ///
    /// # Errors
    /// As [`TensorRtInstance::run_batch`].
    pub fn run_request(&mut self, request: Request<'_>) -> Result<(), Failed> {
        let response = request.new_response().map_err(Failed::of_error)?;
        let mut target = Target::Response(response);
        self.run(Source::Request(request), &mut target)?;
        match target {
            Target::Response(response) => response.send().map_err(Failed::of_error),
            Target::Batch(_) => Ok(()),
        }
    }

    fn run(&mut self, source: Source<'_, '_>, target: &mut Target<'_, '_>) -> Result<(), Failed> {
        logger::clear_errors();
        let model = &self.model.config.model;
        let rows = self.loaded.plan.batching.then(|| source.rows());
        let checked = self.buffers.check_inputs(model, &self.loaded, source, rows);
        checked.map_err(Failed::Input)?;
        let chosen = self.choose().map_err(Failed::Input)?;
        let located = self.buffers.locate_inputs(&self.loaded, source, &self.device, &self.scope);
        located.map_err(Failed::Input)?;
        if self.graphs.is_enabled() && self.run_graph(chosen, rows, target)? {
            return Ok(());
        }
        self.set_inputs(chosen)?;
        self.set_outputs(chosen, rows, target)?;
        // SAFETY: all tensors have addresses: of the host, ordered by the compute stream, or of this instance.
        unsafe { self.enqueue(chosen, rows) }?;
        for (to, from, bytes) in self.buffers.copies.drain(..) {
            copy(&self.device, to, from, bytes).map_err(Failed::of_error)?;
        }
        self.adopt_outputs(chosen, rows, target)
    }

    /// The context whose profile fits the inputs best.
    fn choose(&self) -> Result<usize, Fault> {
        let (loaded, shapes) = (&self.loaded, &self.buffers.shapes);
        if loaded.engine.implicit_batch.is_some() {
            return Ok(0);
        }
        let ranges = self.contexts.iter().map(|context| context.ranges.as_slice());
        let Some(chosen) = nearest(ranges, shapes) else { return Err(self.outside()) };
        self.check_values(&self.contexts[chosen])?;
        Ok(chosen)
    }

    /// Names an input that fits no profile of the instance.
    fn outside(&self) -> Fault {
        let shapes = &self.buffers.shapes;
        let mut reasons = Vec::new();
        for context in &self.contexts {
            let slots = self.loaded.plan.inputs.iter().zip(context.ranges.iter().zip(shapes));
            let outside = |(_, (range, shape)): &(_, (&Range, &Shape))| !range.allows(shape.dims());
            if let Some((slot, (range, shape))) = slots.into_iter().find(outside) {
                reasons.push(format!(
                    "input '{}' has shape {}, optimisation profile {} allows {}",
                    slot.name,
                    shape_text(shape.dims()),
                    context.profile,
                    range.text()
                ));
            }
        }
        Fault::invalid(format!("model '{}': {}", self.model.config.model, reasons.join("; ")))
    }

    fn check_values(&self, context: &ProfileContext) -> Result<(), Fault> {
        let slots = self.loaded.plan.inputs.iter().zip(context.ranges.iter());
        for ((slot, range), (input, shape)) in
            slots.zip(self.buffers.inputs.iter().zip(&self.buffers.shapes))
        {
            let (Some(at), Some([min, max])) = (input.at, &range.values) else { continue };
            let count = shape.dims().iter().product::<i64>().max(0) as usize;
            let mut values = [0i64; crate::vtable::MAX_DIMS];
            let Some(values) = values.get_mut(..count) else { continue };
            for (nth, value) in values.iter_mut().enumerate() {
                // SAFETY: a shape tensor in CPU memory of the request, whose size was checked against its shape.
                *value = unsafe {
                    match slot.handle.kind {
                        types::INT64 => at.cast::<i64>().add(nth).read_unaligned(),
                        _ => i64::from(at.cast::<i32>().add(nth).read_unaligned()),
                    }
                };
            }
            if !range.allows_values(values) {
                return Err(Fault::invalid(format!(
                    "model '{}': shape tensor '{}' has the values {}, optimisation profile {} allows {} to {}",
                    self.model.config.model,
                    slot.name,
                    shape_text(values),
                    context.profile,
                    shape_text(min),
                    shape_text(max)
                )));
            }
        }
        Ok(())
    }

    /// Sets shapes that differ from the run before, and all addresses.
    pub fn set_inputs(&mut self, chosen: usize) -> Result<(), Failed> {
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
                .map_err(|reason| Failed::Input(Fault::invalid(reason)))?;
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
        target: &mut Target<'_, '_>,
    ) -> Result<(), Failed> {
        let Self { contexts, buffers, loaded, device, scope, .. } = self;
        let context = &mut contexts[chosen];
        let implicit = loaded.engine.implicit_batch.is_some();
        buffers.copies.clear();
        for (nth, slot) in loaded.plan.outputs.iter().enumerate() {
            let handle = &slot.handle;
            let shape = match implicit {
                true => Shape::new(&slot.dims).map(|mut shape| {
                    if let (Some(rows), Some(first)) = (rows, shape.dims_mut().first_mut()) {
                        *first = rows as i64;
                    }
                    shape
                }),
                false => context.outputs[nth],
            };
            let Some(shape) = shape else {
                let allocator = prepare_allocator(context, nth, loaded, device, scope);
                allocator.map_err(|reason| Failed::Run(Fault::internal(reason)))?;
                continue;
            };
            let bytes = bytes_of(&shape, slot.dtype).ok_or_else(|| {
                let text = format!("output '{}' has the impossible shape {shape:?}", slot.name);
                Failed::Run(Fault::internal(text))
            })?;
            let mut dims = [0; MAX_RANK];
            let rows = rows.filter(|_| !handle.is_shape);
            let output = described(slot, rows, &shape, &mut dims).map_err(Failed::Run)?;
            let memory = if handle.on_host { Memory::CPU } else { device.memory() };
            let block = target.block(output, bytes, memory).map_err(Failed::of_error)?;
            let mut at = block.ptr;
            if at.is_null() || bytes == 0 {
                let scratch = buffers.scratch(nth, bytes, handle.on_host, device, scope);
                at = scratch.map_err(Failed::of_error)?;
            } else if block.memory != memory {
                let text =
                    format!("output '{}' is not in the memory that the engine writes", slot.name);
                return Err(Failed::Run(Fault::internal(text)));
            } else if !handle.on_host && !is_aligned(at) {
                let scratch = buffers.scratch(nth, bytes, false, device, scope);
                let scratch = scratch.map_err(Failed::of_error)?;
                buffers.copies.push((at, scratch, bytes));
                at = scratch;
            }
            if implicit {
                set_binding(&mut buffers.bindings, handle.binding, at)?;
            } else {
                // SAFETY: memory of this output's size, kept until the run is done.
                unsafe { context.context.set_address(&handle.c_name, at) }.map_err(|reason| {
                    Failed::of_run(format!("output '{}': {reason}", slot.name))
                })?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// All tensors have addresses that are valid until the run is done.
    pub unsafe fn enqueue(&self, chosen: usize, rows: Option<usize>) -> Result<(), Failed> {
        let (context, stream) = (&self.contexts[chosen].context, self.device.stream());
        // SAFETY: by the caller's promise.
        let queued = unsafe {
            match self.loaded.engine.implicit_batch {
                Some(_) => context.enqueue_batch(rows.unwrap_or(1), &self.buffers.bindings, stream),
                None => context.enqueue(stream),
            }
        };
        queued.map_err(|reason| {
            Failed::of_run(format!(
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
        target: &mut Target<'_, '_>,
    ) -> Result<(), Failed> {
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
                return Err(Failed::Run(Fault::internal(text)));
            };
            let bytes = bytes_of(&shape, slot.dtype).filter(|bytes| *bytes <= memory.len());
            let bytes = bytes.ok_or_else(|| {
                let text = format!(
                    "output '{}' of shape {shape:?} has only {} bytes",
                    slot.name,
                    memory.len()
                );
                Failed::Run(Fault::internal(text))
            })?;
            let written = device.event().and_then(|event| {
                event.record(device.stream())?;
                Ok(event)
            });
            let written = written.map_err(Failed::of_error)?;
            let mut dims = [0; MAX_RANK];
            match described(slot, rows, &shape, &mut dims) {
                Ok(output) => {
                    target.adopt(output, bytes, memory, written).map_err(Failed::of_error)?;
                }
                Err(fault) => {
                    memory.free_after(written);
                    // Each request by itself may have as many rows as its batch size.
                    return Err(Failed::Input(fault));
                }
            }
        }
        Ok(())
    }
}

/// An output as the host takes it.
fn described<'a>(
    slot: &'a trtserver_framework::slot::Slot<crate::tensors::Handle>,
    rows: Option<usize>,
    shape: &Shape,
    buffer: &'a mut [i64; MAX_RANK],
) -> Result<Output<'a>, Fault> {
    let rank = shape.dims().len();
    buffer[..rank].copy_from_slice(shape.dims());
    let shape = output_shape(slot, rows, buffer, rank)
        .map_err(|fault| fault.within(format_args!("output '{}'", slot.name)))?;
    Ok(Output { name: &slot.name, kind: Dtype::from_abi(slot.dtype), shape })
}

/// Makes TensorRT ask for the memory of an output during the run.
fn prepare_allocator(
    context: &mut ProfileContext,
    nth: usize,
    loaded: &Arc<Loaded>,
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

fn set_binding(bindings: &mut [*mut u8], at: usize, to: *mut u8) -> Result<(), Failed> {
    match bindings.get_mut(at) {
        Some(binding) => {
            *binding = to;
            Ok(())
        }
        None => Err(Failed::Run(Fault::internal(format!("the engine has no binding {at}")))),
    }
}

fn input_refused(name: &str, shape: &Shape, reason: &str) -> Failed {
    let shape = shape_text(shape.dims());
    Failed::Input(Fault::invalid(format!("input '{name}' of shape {shape}: {reason}")))
}
