//! CUDA graphs (`optimization.cuda.graphs`): the work of a run captured once for its shapes, then
//! launched by one call.
//!
//! A graph holds addresses, so each has inputs and outputs of its own, and tensors are copied on
//! the device before and after. Without `graph_spec`, a graph is captured for each combination of
//! shapes that runs, up to [`MAX_GRAPHS`]; with it, for the shapes that it lists, and smaller
//! batches down to `graph_lower_bound` are padded to them.

use crate::buffers::{copy_memory, free_behind};
use crate::driver::{self, CudaGraph};
use crate::instance::TensorRtInstance;
use crate::model::LoadedPlan;
use crate::outlet::shape_bytes;
use crate::profile::nearest_profile;
use crate::run::RunFailure;
use crate::settings::{CudaOptions, GraphSpec};
use crate::vtable::TensorShape;
use std::ptr::NonNull;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::outlet::{OutputOutlet, OutputTensor};
use trtserver_framework::types::shape_text;
use trtserver_plugin_api::author::{Dtype, Error, HostMemory};

/// Graphs of an instance without `graph_spec`: each holds memory for its tensors.
const MAX_GRAPHS: usize = 8;

#[derive(Default)]
pub struct GraphCache {
    enabled: bool,
    /// Only the shapes of the configuration.
    listed: bool,
    entries: Vec<GraphEntry>,
}

/// Shapes for which there is a graph, or will be.
struct GraphEntry {
    /// Shapes of the plan's inputs.
    shapes: Vec<TensorShape>,
    /// The smallest batch that uses it.
    lowest: i64,
    state: GraphState,
}

enum GraphState {
    New,
    /// Runs of these shapes are queued as without graphs.
    Refused,
    Captured(CapturedRun),
}

struct CapturedRun {
    /// The context whose work it is.
    context: usize,
    graph: CudaGraph,
    inputs: Vec<HostMemory>,
    outputs: Vec<(TensorShape, HostMemory)>,
}

impl GraphCache {
    /// The graphs that a configuration asks for, and why there can be none although it does.
    pub fn new(options: &CudaOptions, loaded: &LoadedPlan) -> (GraphCache, Option<String>) {
        if !options.graphs {
            return (GraphCache::default(), None);
        }
        let inputs = &loaded.plan.inputs;
        let tensors = || inputs.iter().chain(&loaded.plan.outputs);
        if let Some(tensor) = tensors().find(|tensor| tensor.handle.is_shape) {
            let reason =
                format!("tensor '{}' is in CPU memory, which a graph cannot read", tensor.name);
            return (GraphCache::default(), Some(reason));
        }
        let batching = loaded.plan.batching;
        let dims: Vec<(&str, &[i64])> =
            inputs.iter().map(|slot| (slot.name.as_str(), slot.dims.as_slice())).collect();
        let mut entries = Vec::new();
        let mut wrong = None;
        for spec in &options.specs {
            match GraphEntry::from_spec(spec, &dims, batching) {
                Ok(entry) => entries.push(entry),
                Err(reason) => wrong = Some(format!("graph_spec: {reason}")),
            }
        }
        if wrong.is_some() {
            return (GraphCache::default(), wrong);
        }
        (GraphCache { enabled: true, listed: !options.specs.is_empty(), entries }, None)
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Position of the entry for the shapes of a run, the one with the least padding; adds one if
    /// none is listed.
    fn entry(&mut self, shapes: &[TensorShape]) -> Option<usize> {
        let fitting = self.entries.iter().enumerate().filter(|(_, entry)| entry.fits(shapes));
        let found = fitting.min_by_key(|(_, entry)| entry.rows()).map(|(at, _)| at);
        if found.is_some() || self.listed || self.entries.len() >= MAX_GRAPHS {
            return found;
        }
        let lowest = shapes.first().and_then(|shape| shape.dims().first()).copied().unwrap_or(0);
        self.entries.push(GraphEntry { shapes: shapes.to_vec(), lowest, state: GraphState::New });
        Some(self.entries.len() - 1)
    }
}

impl GraphEntry {
    /// `dims`: name and shape of the engine's inputs, batch dimension first, -1 = dynamic.
    fn from_spec(
        spec: &GraphSpec,
        dims: &[(&str, &[i64])],
        batching: bool,
    ) -> Result<GraphEntry, String> {
        if let Some((name, _)) = spec.inputs.iter().find(|(n, _)| dims.iter().all(|(d, _)| d != n))
        {
            return Err(format!("the engine has no input '{name}'"));
        }
        let shapes = dims.iter().map(|(name, dims)| {
            let given = spec.inputs.iter().find(|(given, _)| given == name);
            let own = &dims[usize::from(batching).min(dims.len())..];
            let own = given.map_or(own, |(_, given)| given.as_slice());
            let full: Vec<i64> = batching
                .then_some(spec.batch.max(1))
                .into_iter()
                .chain(own.iter().copied())
                .collect();
            let allowed = full.len() == dims.len()
                && full.iter().zip(*dims).all(|(d, dim)| *d > 0 && (*dim == -1 || dim == d));
            match TensorShape::new(&full).filter(|_| allowed) {
                Some(shape) => Ok(shape),
                None => Err(format!(
                    "shape {} of input '{name}', the engine has {}",
                    shape_text(&full),
                    shape_text(dims)
                )),
            }
        });
        let lowest = spec.lower.as_ref().map_or(spec.batch, |lower| lower.batch).max(1);
        Ok(GraphEntry { shapes: shapes.collect::<Result<_, _>>()?, lowest, state: GraphState::New })
    }

    fn rows(&self) -> i64 {
        self.shapes.first().and_then(|shape| shape.dims().first()).copied().unwrap_or(0)
    }

    /// Equal but for the rows, which are at most those of the graph, and not below the lowest.
    fn fits(&self, shapes: &[TensorShape]) -> bool {
        self.shapes.len() == shapes.len()
            && self.shapes.iter().zip(shapes).all(|(own, given)| match (own.dims(), given.dims()) {
                ([own_rows, own @ ..], [rows, given @ ..]) => {
                    own == given && rows <= own_rows && (rows == own_rows || *rows >= self.lowest)
                }
                (own, given) => own == given,
            })
    }
}

impl TensorRtInstance {
    /// Queues a run by its graph; false = there is none for these shapes.
    ///
    /// # Errors
    /// The run could not be queued.
    pub fn run_graph(
        &mut self,
        chosen: usize,
        rows: Option<usize>,
        outlet: &mut dyn OutputOutlet,
    ) -> Result<bool, RunFailure> {
        let Some(at) = self.graphs.entry(&self.buffers.shapes) else { return Ok(false) };
        if matches!(self.graphs.entries[at].state, GraphState::New) {
            self.capture(at, chosen);
        }
        let GraphState::Captured(captured) = &self.graphs.entries[at].state else {
            return Ok(false);
        };
        if captured.context != chosen {
            return Ok(false);
        }
        self.launch(captured, rows, outlet).map(|()| true)
    }

    /// Captures the graphs for the shapes that the configuration lists.
    pub fn capture_listed(&mut self) {
        for at in 0..self.graphs.entries.len() {
            let ranges = self.contexts.iter().map(|context| context.ranges.as_slice());
            let chosen = match self.loaded.engine.implicit_batch {
                Some(_) => Some(0),
                None => nearest_profile(ranges, &self.graphs.entries[at].shapes),
            };
            match chosen {
                Some(chosen) => self.capture(at, chosen),
                None => self.refuse(at, "no optimisation profile of the instance allows them"),
            }
        }
    }

    /// Captures the graph of an entry, or says why there can be none.
    fn capture(&mut self, at: usize, chosen: usize) {
        match self.captured(at, chosen) {
            Ok(captured) => self.graphs.entries[at].state = GraphState::Captured(captured),
            Err(reason) => self.refuse(at, &reason),
        }
    }

    fn refuse(&mut self, at: usize, reason: &str) {
        let entry = &mut self.graphs.entries[at];
        entry.state = GraphState::Refused;
        let shapes: Vec<_> = entry.shapes.iter().map(|shape| shape_text(shape.dims())).collect();
        self.scope.warning(format_args!(
            "model '{}' runs without a CUDA graph for inputs of shape {}: {reason}",
            self.model.config.model,
            shapes.join(", ")
        ));
    }

    /// Captures the work for the shapes of an entry. The addresses of the run's own tensors are
    /// restored afterwards.
    fn captured(&mut self, at: usize, chosen: usize) -> Result<CapturedRun, String> {
        let driver = driver::cuda_driver()?;
        let shapes = self.graphs.entries[at].shapes.clone();
        let own = (self.buffers.shapes.clone(), self.buffers.inputs.clone());
        let mut memory = Vec::new();
        let captured = self.capture_with(driver, chosen, &shapes, &mut memory);
        (self.buffers.shapes, self.buffers.inputs) = own;
        match captured {
            Ok((graph, outputs)) => {
                let outputs = outputs.into_iter().zip(memory.split_off(shapes.len())).collect();
                Ok(CapturedRun { context: chosen, graph, inputs: memory, outputs })
            }
            Err(reason) => {
                // The first run may still be at work.
                for block in memory {
                    let _ = free_behind(&self.device, block);
                }
                Err(reason)
            }
        }
    }

    /// The graph, and the shapes of the outputs. Adds the memory of inputs and outputs to `memory`.
    fn capture_with(
        &mut self,
        driver: &'static driver::CudaDriver,
        chosen: usize,
        shapes: &[TensorShape],
        memory: &mut Vec<HostMemory>,
    ) -> Result<(CudaGraph, Vec<TensorShape>), String> {
        let text = |failed: RunFailure| failed.into_error().text().to_owned();
        for (nth, shape) in shapes.iter().enumerate() {
            let dtype = self.loaded.plan.inputs[nth].dtype;
            let block = self.allocate(shape_bytes(shape, dtype), memory)?;
            self.buffers.shapes[nth] = *shape;
            self.buffers.inputs[nth].at = NonNull::new(block);
        }
        self.set_inputs(chosen).map_err(text)?;
        let rows = self.loaded.plan.batching.then(|| {
            let first = shapes.first().and_then(|shape| shape.dims().first());
            first.copied().unwrap_or(1) as usize
        });
        let mut outputs = Vec::new();
        for nth in 0..self.loaded.plan.outputs.len() {
            let slot = &self.loaded.plan.outputs[nth];
            let shape = self.contexts[chosen].output_shape(&self.loaded, nth, rows);
            let shape = shape.ok_or_else(|| {
                format!("the shape of output '{}' is known only while the engine runs", slot.name)
            })?;
            let block = self.allocate(shape_bytes(&shape, slot.dtype), memory)?;
            if self.loaded.engine.implicit_batch.is_some() {
                let binding = self.buffers.bindings.get_mut(slot.handle.binding);
                *binding.ok_or("the engine has fewer bindings than tensors")? = block;
            } else {
                // SAFETY: memory of the output's size, kept as long as the graph.
                unsafe { self.contexts[chosen].context.set_address(&slot.handle.c_name, block)? };
            }
            outputs.push(shape);
        }
        // TensorRT prepares the first run of new shapes by work that cannot be captured. SAFETY:
        // all tensors have memory of their size; the inputs hold arbitrary bytes, and the result is
        // not read.
        unsafe { self.enqueue(chosen, rows) }.map_err(text)?;
        let stream = self.device.stream().as_raw();
        // SAFETY: all tensors have memory of their size, which is kept as long as the graph; the
        // compute stream belongs to the context of this thread.
        let graph = unsafe { driver.capture(stream, || self.enqueue(chosen, rows).map_err(text)) }?;
        Ok((graph, outputs))
    }

    /// Device memory of a graph's tensor.
    fn allocate(
        &self,
        bytes: Option<usize>,
        memory: &mut Vec<HostMemory>,
    ) -> Result<*mut u8, String> {
        let bytes = bytes.ok_or("a tensor has no size")?.max(1);
        let stream = Some(self.device.stream());
        let block = self.scope.allocate_for(self.device.memory(), bytes, 0, stream);
        let block = block.map_err(|e| e.text().to_owned())?;
        let at = block.as_ptr();
        memory.push(block);
        Ok(at)
    }

    fn launch(
        &self,
        captured: &CapturedRun,
        rows: Option<usize>,
        outlet: &mut dyn OutputOutlet,
    ) -> Result<(), RunFailure> {
        let device = &self.device;
        let failed = |error: Error| RunFailure::Run(error.into());
        for (input, to) in self.buffers.inputs.iter().zip(&captured.inputs) {
            let Some(from) = input.at else { continue };
            copy_memory(device, to.as_ptr(), from.as_ptr(), input.bytes.min(to.len()))
                .map_err(failed)?;
        }
        // SAFETY: the compute stream belongs to the context in which the graph was captured.
        unsafe { captured.graph.launch(device.stream().as_raw()) }
            .map_err(|reason| RunFailure::Run(PluginFault::internal(reason)))?;
        for (slot, (shape, from)) in self.loaded.plan.outputs.iter().zip(&captured.outputs) {
            let shape = shape.with_rows(rows);
            let bytes = shape_bytes(&shape, slot.dtype).unwrap_or(0);
            let kind = Dtype::from_abi(slot.dtype);
            let dims = if slot.scalar { &[1][..] } else { shape.dims() };
            let output = OutputTensor { name: &slot.name, kind, shape: dims };
            let block = outlet.block_in(output, bytes, device.memory()).map_err(failed)?;
            if !block.ptr.is_null() {
                copy_memory(device, block.ptr, from.as_ptr(), bytes).map_err(failed)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "graphs_tests.rs"]
mod tests;
