//! Cached runs: bindings of inputs and outputs, reused for requests with equal shapes.
//!
//! Creating values over request memory and looking up their names costs ONNX Runtime up to a third
//! of a small run; copying a few tensors into and out of fixed memory costs almost nothing. So the
//! second request with the same inputs, shapes and requested outputs gets a cached run, if its
//! tensors are small and the shapes of its outputs are known. All others are passed by pointer: see
//! `inputs.rs` and `outputs.rs`.

use crate::binding::IoBinding;
use crate::check::TensorSlot;
use crate::execute::RunScratch;
use crate::model::OnnxModel;
use crate::value::OnnxValue;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::{CacheLine, copy_parts};
use trtserver_framework::shape;
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::slot::slot_position;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Dtype, Request};

/// Maximum number of cached runs of an instance, and of fingerprints of recent requests.
const MAX_RUNS: usize = 8;
/// Maximum bytes of all inputs and outputs of a cached run. At 32 KiB the copies cost as much as
/// they save.
const MAX_BYTES: usize = 8 << 10;

/// The cached runs of one instance, most recently used first.
#[derive(Default)]
pub struct CachedRuns {
    runs: Vec<CachedRun>,
    /// Ring of fingerprints of requests without a cached run.
    recent: [Option<u64>; MAX_RUNS],
    next: usize,
    /// Binding failed for this model.
    refused: bool,
}

impl CachedRuns {
    /// The run for a request; `None`: pass the request by pointer.
    pub fn find(
        &mut self,
        model: &OnnxModel,
        scratch: &mut RunScratch,
        request: Request<'_>,
    ) -> Option<&mut CachedRun> {
        match self.runs.iter().position(|run| run.fits(model, request)) {
            Some(0) => {}
            Some(nth) => self.runs[..=nth].rotate_right(1),
            None => {
                if self.refused || !is_small(model, request) || !self.is_known(request) {
                    return None;
                }
                match CachedRun::new(model, scratch, request) {
                    Ok(run) => {
                        let run = run?;
                        self.runs.truncate(MAX_RUNS - 1);
                        self.runs.insert(0, run);
                    }
                    Err(fault) => {
                        self.refused = true;
                        model.log.warning(format_args!(
                            "model '{}': no run can be cached for its small requests: {fault}",
                            model.name
                        ));
                        return None;
                    }
                }
            }
        }
        self.runs.first_mut()
    }

    /// Removes the run that was found last: its binding is undefined after an error.
    pub fn remove_found(&mut self) {
        if !self.runs.is_empty() {
            self.runs.remove(0);
        }
    }

    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// Whether an equal request is in the ring. If so it is removed, so that an evicted run is not
    /// recreated at once; otherwise it is added.
    fn is_known(&mut self, request: Request<'_>) -> bool {
        let print = fingerprint(request);
        if let Some(known) = self.recent.iter_mut().find(|known| **known == Some(print)) {
            *known = None;
            return true;
        }
        self.recent[self.next] = Some(print);
        self.next = (self.next + 1) % MAX_RUNS;
        false
    }
}

/// Fingerprint of names, shapes and rows. A collision only caches a run too early.
fn fingerprint(request: Request<'_>) -> u64 {
    fn mix(hash: u64, value: u64) -> u64 {
        (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    }
    fn name(hash: u64, name: &str) -> u64 {
        name.bytes().fold(mix(hash, name.len() as u64), |hash, byte| mix(hash, byte.into()))
    }
    let start = mix(request.inputs().len() as u64, request.batch_size() as u64);
    let inputs = request.inputs().fold(start, |hash, input| {
        let dims = input.shape().iter().map(|dim| dim.cast_unsigned());
        dims.fold(name(hash, input.name()), mix)
    });
    request.requested_outputs().fold(inputs, |hash, output| name(hash, output.name()))
}

/// Whether all tensors have a known size, and it is small.
fn is_small(model: &OnnxModel, request: Request<'_>) -> bool {
    let plan = &model.plan;
    let rows = plan.batching.then(|| request.batch_size());
    let inputs = request.inputs().map(|input| match input.dtype().to_abi() {
        dtype::STRING => None,
        _ => Some(input.byte_size()),
    });
    let outputs = request.requested_outputs().map(|requested| {
        let at = slot_position(&plan.outputs, requested.index(), requested.name())?;
        Some(shape::before_run(&plan.outputs[at], rows, &mut [0; MAX_RANK])?.1)
    });
    let fitting = |sum: usize, bytes: Option<usize>| {
        sum.checked_add(bytes?).filter(|&total| total <= MAX_BYTES)
    };
    request.requested_outputs().len() > 0 && inputs.chain(outputs).try_fold(0, fitting).is_some()
}

/// Number of cached runs executed, for tests.
#[cfg(test)]
pub static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Location of a tensor.
struct TensorLocation {
    /// Position in the plan.
    slot: usize,
    /// Shape for clients.
    shape: Vec<i64>,
    /// First cache line in the memory.
    line: usize,
    bytes: usize,
}

/// A run bound to its own memory.
pub struct CachedRun {
    /// First, so that it is dropped before the memory.
    binding: IoBinding,
    memory: Vec<CacheLine>,
    rows: usize,
    /// In the order of the requests.
    inputs: Vec<TensorLocation>,
    outputs: Vec<TensorLocation>,
}

impl CachedRun {
    /// `None`: the request is invalid; passing it by pointer reports the error.
    fn new(
        model: &OnnxModel,
        scratch: &mut RunScratch,
        request: Request<'_>,
    ) -> Result<Option<Self>, PluginFault> {
        let Some((inputs, outputs, lines)) = lay_out(model, scratch, request) else {
            return Ok(None);
        };
        let mut memory = vec![CacheLine::EMPTY; lines];
        let start = memory.as_mut_ptr();
        let runtime = model.session.runtime;
        let value = |slot: &TensorSlot, place: &TensorLocation, shape: &[i64]| {
            // SAFETY: the location is within the memory and aligned to a line. The memory is
            // accessed through pointers only, and outlives the binding.
            unsafe {
                let data = start.add(place.line).cast();
                OnnxValue::over(runtime, slot.handle.element, shape, data, place.bytes)
            }
        };
        // SAFETY: an instance drops its runs before its model.
        let mut binding = unsafe { IoBinding::new(&model.session)? };
        for (place, tensor) in inputs.iter().zip(request.inputs()) {
            let slot = &model.plan.inputs[place.slot];
            let mut buffer = [0; MAX_RANK];
            let kind = tensor.dtype().to_abi();
            let shape = model.accepted(slot, kind, &place.shape, place.bytes, &mut buffer)?;
            binding.input(&slot.handle.c_name, &value(slot, place, shape)?)?;
        }
        for place in &outputs {
            let slot = &model.plan.outputs[place.slot];
            binding.output(&slot.handle.c_name, &value(slot, place, &place.shape)?)?;
        }
        Ok(Some(Self { binding, memory, rows: request.batch_size(), inputs, outputs }))
    }

    fn fits(&self, model: &OnnxModel, request: Request<'_>) -> bool {
        let plan = &model.plan;
        self.rows == request.batch_size()
            && self.inputs.len() == request.inputs().len()
            && self.outputs.len() == request.requested_outputs().len()
            && self.inputs.iter().zip(request.inputs()).all(|(place, given)| {
                let slot = &plan.inputs[place.slot];
                given.byte_size() == place.bytes
                    && given.shape() == place.shape
                    && given.dtype().to_abi() == slot.dtype
                    && given.name() == slot.name
            })
            && (self.outputs.iter().zip(request.requested_outputs()))
                .all(|(place, requested)| plan.outputs[place.slot].name == requested.name())
    }

    /// Copies the inputs of a matching request.
    pub fn fill(&mut self, request: Request<'_>) -> Result<(), PluginFault> {
        for (place, tensor) in self.inputs.iter().zip(request.inputs()) {
            // SAFETY: the location is within the memory, and no run is in progress: this has
            // `&mut self`.
            let to = unsafe {
                let start = self.memory.as_mut_ptr().add(place.line).cast();
                std::slice::from_raw_parts_mut(start, place.bytes)
            };
            copy_parts(tensor, to)?;
        }
        Ok(())
    }

    pub fn run(&mut self, model: &OnnxModel) -> Result<(), PluginFault> {
        #[cfg(test)]
        COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let lines = self.memory.len();
        let first = self.outputs.first().map_or(lines, |place| place.line);
        // SAFETY: the lines from the first output on, and no run is in progress.
        // If a run does not write an output, no client may see data of another.
        unsafe { self.memory.as_mut_ptr().add(first).write_bytes(0, lines - first) };
        // SAFETY: bound to this session and to valid memory that is not shared.
        unsafe { model.session.run_bound(&self.binding) }
    }

    /// Responds to a request with the outputs of the run.
    pub fn respond(&self, model: &OnnxModel, request: Request<'_>) -> Result<(), PluginFault> {
        let mut response = request.new_response()?;
        for place in &self.outputs {
            let slot = &model.plan.outputs[place.slot];
            // SAFETY: the location is within the memory, and no run is in progress.
            let bytes = unsafe {
                let start = self.memory.as_ptr().add(place.line).cast();
                std::slice::from_raw_parts(start, place.bytes)
            };
            response.put_bytes(&slot.name, Dtype::from_abi(slot.dtype), &place.shape, bytes)?;
        }
        Ok(response.send()?)
    }
}

/// Locations of inputs and outputs, inputs first, and the total number of lines.
fn lay_out(
    model: &OnnxModel,
    scratch: &mut RunScratch,
    request: Request<'_>,
) -> Option<(Vec<TensorLocation>, Vec<TensorLocation>, usize)> {
    let plan = &model.plan;
    let mut lines = 0;
    let mut place = |slot: usize, shape: &[i64], bytes: usize| {
        let line = lines;
        lines += bytes.div_ceil(size_of::<CacheLine>());
        TensorLocation { slot, shape: shape.to_vec(), line, bytes }
    };
    scratch.expect_inputs(model);
    let mut inputs = Vec::new();
    for tensor in request.inputs() {
        scratch.claim(model, tensor).ok()?;
        let slot = slot_position(&plan.inputs, tensor.index(), tensor.name())?;
        let (kind, bytes) = (tensor.dtype().to_abi(), tensor.byte_size());
        let mut buffer = [0; MAX_RANK];
        model.accepted(&plan.inputs[slot], kind, tensor.shape(), bytes, &mut buffer).ok()?;
        inputs.push(place(slot, tensor.shape(), bytes));
    }
    scratch.all_claimed(model).ok()?;
    let mut outputs: Vec<TensorLocation> = Vec::new();
    for requested in request.requested_outputs() {
        let slot = slot_position(&plan.outputs, requested.index(), requested.name())?;
        if outputs.iter().any(|other| other.slot == slot) {
            return None; // requested twice
        }
        let mut buffer = [0; MAX_RANK];
        let rows = plan.batching.then(|| request.batch_size());
        let (shape, bytes) = shape::before_run(&plan.outputs[slot], rows, &mut buffer)?;
        outputs.push(place(slot, shape, bytes));
    }
    Some((inputs, outputs, lines))
}
