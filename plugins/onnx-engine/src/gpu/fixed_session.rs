//! A session for one batch size: its inputs and outputs are bound to blocks that stay where they
//! are, as a CUDA graph needs it. Batches with fewer rows are padded with zeros.
//!
//! Everything is queued on the compute stream of the instance: inputs are copied into the blocks,
//! the session runs, outputs are copied out of them into memory of the host.

use super::buckets::fixed_dims;
use super::fixed_block::{FixedBlock, InputSource, copy_bytes};
use super::session::GpuSession;
use crate::check::TensorSlot;
use crate::execute::is_wrong_block;
use crate::outputs::returned_output;
use trtserver_framework::config::{Config, ConfiguredTensor};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::type_size;
use trtserver_plugin_api::author::{Device, HostMemory, Memory, Scope};

/// Fields are dropped in this order: the session uses the blocks.
pub struct FixedSession {
    pub session: GpuSession,
    /// By position in the plan.
    pub(super) inputs: Vec<FixedBlock>,
    /// `None`: the library allocates the output, whose shape is not known before a run.
    pub(super) outputs: Vec<Option<FixedBlock>>,
    /// Rows of a run; 1 for a model that does not batch.
    pub rows: usize,
    /// Input rows that may hold something other than zeros.
    filled: usize,
    /// Runs are replays of a CUDA graph.
    pub graph: bool,
}

// SAFETY: the pointers go to memory that the blocks own; the library allows any thread to use a
// session and its values, one at a time.
unsafe impl Send for FixedSession {}

impl FixedSession {
    /// Binds all tensors of `session` for runs of `rows` rows.
    ///
    /// # Errors
    /// There is too little memory, or the library refuses a block.
    pub fn new(
        session: GpuSession,
        config: &Config,
        rows: usize,
        graph: bool,
        (device, scope): (&Device, &Scope),
    ) -> Result<Self, PluginFault> {
        let plan = &session.model.plan;
        let batching = plan.batching;
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (at, slot) in plan.inputs.iter().enumerate() {
            let place = place_of(session.inputs_on_device[at], device);
            let dims = fixed_dims(slot, configured(&config.inputs, at, slot), batching);
            let dims = dims.ok_or_else(|| {
                PluginFault::internal(format!("input '{}' has a variable dimension", slot.name))
            })?;
            inputs.push(FixedBlock::new(&session, slot, dims, rows, place, (device, scope))?);
        }
        for (at, slot) in plan.outputs.iter().enumerate() {
            let place = place_of(session.outputs_on_device[at], device);
            let known = session.model.findings.preallocates() && !slot.passed;
            let dims = fixed_dims(slot, configured(&config.outputs, at, slot), batching);
            outputs.push(match dims.filter(|_| known) {
                None => None,
                Some(dims) => {
                    Some(FixedBlock::new(&session, slot, dims, rows, place, (device, scope))?)
                }
            });
        }
        let mut fixed = Self { session, inputs, outputs, rows, filled: 0, graph };
        fixed.bind()?;
        Ok(fixed)
    }

    fn bind(&mut self) -> Result<(), PluginFault> {
        let GpuSession { binding, model, .. } = &mut self.session;
        binding.clear_inputs();
        for (slot, block) in model.plan.inputs.iter().zip(&self.inputs) {
            binding.input(&slot.handle.c_name, &block.value)?;
        }
        self.bind_outputs()
    }

    fn bind_outputs(&mut self) -> Result<(), PluginFault> {
        let on_gpu = self.session.memory();
        let GpuSession { binding, model, outputs_on_device, .. } = &mut self.session;
        let on_cpu = model.session.runtime.memory.cast_const();
        binding.clear_outputs();
        for (at, (slot, block)) in model.plan.outputs.iter().zip(&self.outputs).enumerate() {
            let name = &slot.handle.c_name;
            match block {
                Some(block) => binding.output(name, &block.value)?,
                None => {
                    binding.output_in(name, if outputs_on_device[at] { on_gpu } else { on_cpu })?;
                }
            }
        }
        Ok(())
    }

    /// Name of an output whose shape is not known before a run, which a CUDA graph cannot have.
    pub fn unknown_output(&self) -> Option<&str> {
        let outputs = self.session.model.plan.outputs.iter().zip(&self.outputs);
        outputs.filter(|(_, block)| block.is_none()).map(|(slot, _)| slot.name.as_str()).next()
    }

    pub fn inputs(&self) -> &[FixedBlock] {
        &self.inputs
    }

    /// Bytes of the blocks on the device.
    pub fn device_bytes(&self) -> usize {
        let blocks = self.inputs.iter().chain(self.outputs.iter().flatten());
        blocks.filter(|block| block.is_on_device()).map(|block| block.bytes).sum()
    }

    /// Copies elements of input `at` into its block, `offset` bytes behind its start.
    ///
    /// # Errors
    /// They are more than the block holds, or the device is lost.
    ///
    /// # Safety
    /// The source is valid until the next run of the session has ended.
    pub unsafe fn write_input(
        &mut self,
        device: &Device,
        (at, offset): (usize, usize),
        source: InputSource,
    ) -> Result<(), PluginFault> {
        let block = &self.inputs[at];
        let InputSource { data, bytes, memory } = source;
        if bytes == 0 {
            return Ok(());
        }
        if offset + bytes > block.bytes {
            let name = &self.session.model.plan.inputs[at].name;
            return Err(PluginFault::internal(format!(
                "input '{name}' has {} bytes, a run of {} rows takes {}",
                offset + bytes,
                self.rows,
                block.bytes
            )));
        }
        let to = (block.data.wrapping_add(offset), block.memory);
        let stream = block.is_on_device().then(|| device.stream());
        // SAFETY: the block holds as many bytes, and only the runs of this session read it; the
        // source is valid by the caller's promise.
        unsafe { copy_bytes(device, to, (data, memory), bytes, stream) }
    }

    /// Zeros the rows behind the first `rows`, as far as earlier runs have left something there.
    /// `zeros` is device memory of zeros, as large as all rows but one of any input.
    pub fn pad_inputs(
        &mut self,
        device: &Device,
        rows: usize,
        zeros: Option<&HostMemory>,
    ) -> Result<(), PluginFault> {
        let behind = rows..self.filled.max(rows);
        for block in self.inputs.iter().filter(|block| block.row_bytes > 0 && !behind.is_empty()) {
            let (start, bytes) = (behind.start * block.row_bytes, behind.len() * block.row_bytes);
            if !block.is_on_device() {
                // SAFETY: inside the block, which no run uses now.
                unsafe { block.data.add(start).write_bytes(0, bytes) };
                continue;
            }
            let zeros = zeros.filter(|zeros| zeros.len() >= bytes).ok_or_else(|| {
                PluginFault::internal(format!("{bytes} bytes of zeros are needed for padding"))
            })?;
            let to = (block.data.wrapping_add(start), block.memory);
            let from = (zeros.as_ptr().cast_const(), zeros.memory());
            // SAFETY: inside the block; the zeros live as long as the session.
            unsafe { device.copy(to, from, bytes, Some(device.stream()))? };
        }
        self.filled = rows;
        Ok(())
    }

    /// Runs what is in the blocks. The library waits for the stream before it returns.
    pub fn run(&mut self) -> Result<(), PluginFault> {
        if self.outputs.iter().any(Option::is_none) {
            // Values of the run before are still bound.
            self.bind_outputs()?;
        }
        // SAFETY: the values are over the blocks, which live as long as the session.
        match unsafe { self.session.run() } {
            // The graph returns another shape than file and configuration say. Which output it is,
            // a run without blocks shows.
            Err(fault) if is_wrong_block(&fault) && !self.graph && self.has_blocks() => {
                self.session.model.findings.stop_preallocating();
                self.session.binding.clear_outputs();
                self.outputs.fill_with(|| None);
                self.bind_outputs()?;
                // SAFETY: as above.
                unsafe { self.session.run() }
            }
            ran => ran,
        }
    }

    /// All rows of the inputs may hold something: they were written by other means than a batch.
    pub fn mark_filled(&mut self) {
        self.filled = self.rows;
    }

    /// The first row of each output of the last run.
    ///
    /// # Errors
    /// An output has not the rows of the run.
    pub fn read_first_rows(&self, device: &Device) -> Result<Vec<Vec<u8>>, PluginFault> {
        let model = &self.session.model;
        let values = self.session.binding.outputs()?;
        let mut rows = Vec::with_capacity(values.len());
        for (at, (slot, value)) in model.plan.outputs.iter().zip(&values).enumerate() {
            let mut buffer = [0; MAX_RANK];
            let (_, count) = returned_output(model, slot, self.rows, value, &mut buffer)?;
            let mut row = vec![0u8; count / self.rows * type_size(slot.dtype)];
            if !row.is_empty() {
                let on_device = self.session.outputs_on_device[at];
                let from = (value.data()?.cast_const(), place_of(on_device, device));
                let to = (row.as_mut_ptr(), Memory::CPU);
                // SAFETY: the value has these bytes, and the run that writes them has ended.
                unsafe { copy_bytes(device, to, from, row.len(), None)? };
            }
            rows.push(row);
        }
        Ok(rows)
    }

    fn has_blocks(&self) -> bool {
        self.outputs.iter().any(Option::is_some)
    }
}

fn place_of(on_device: bool, device: &Device) -> Memory {
    if on_device { device.memory() } else { Memory::CPU }
}

fn configured<'a>(
    all: &'a [ConfiguredTensor],
    at: usize,
    slot: &TensorSlot,
) -> Option<&'a ConfiguredTensor> {
    all.get(at).filter(|tensor| tensor.name == slot.name)
}
