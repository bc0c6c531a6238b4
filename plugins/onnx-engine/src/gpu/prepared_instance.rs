//! An instance on a GPU that executes batches in sessions of prepared sizes.

use super::arena_report::ArenaReport;
use super::fixed_block::InputSource;
use super::prepared::PreparedSessions;
use super::step_times::StepTimes;
use super::tensors::download_input;
use crate::model::OnnxModel;
use trtserver_framework::execute::Executor;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::{InputBlocks, InputClaims};
use trtserver_framework::outlet::OutputOutlet;
use trtserver_framework::shape::MAX_RANK;
use trtserver_plugin_api::abi::types::memory_type;
use trtserver_plugin_api::author::{
    Batch, BatchSize, Buf, Device, Dtype, Memory, Request, Scope, Tensor,
};

pub struct PreparedInstance {
    /// Ends before the memory of the sessions.
    report: ArenaReport,
    sessions: PreparedSessions,
    /// Position of each requested output in the plan; the flag is not used.
    requested: Vec<(usize, bool)>,
    claims: InputClaims,
    /// Inputs on the device that the CPU reads.
    blocks: InputBlocks,
    failed: Vec<bool>,
    device: Device,
    times: StepTimes,
}

impl PreparedInstance {
    pub fn new(sessions: PreparedSessions, device: Device, scope: &Scope) -> Self {
        let report = ArenaReport::new(&sessions.model().name, &device, scope);
        report.report(Some(sessions.arena_bytes()));
        let times = StepTimes::new(&sessions.model().name, scope);
        Self {
            report,
            sessions,
            requested: Vec::new(),
            claims: InputClaims::default(),
            blocks: InputBlocks::default(),
            failed: Vec::new(),
            device,
            times,
        }
    }

    pub fn batch_sizes(&self) -> Vec<BatchSize> {
        self.sessions.batch_sizes()
    }

    fn model(&self) -> &OnnxModel {
        self.sessions.model()
    }

    /// Chooses the session for `rows` rows, and begins to check inputs.
    fn begin(&mut self, rows: usize) -> Result<(), PluginFault> {
        self.times.begin();
        self.sessions.choose(rows)?;
        self.requested.clear();
        self.claims.begin(self.sessions.model().plan.inputs.len());
        Ok(())
    }

    /// Position of an input in the plan, once its type, shape and size are checked.
    fn claim_input(
        &mut self,
        tensor: Tensor<'_>,
        kind: Dtype,
        shape: &[i64],
        bytes: usize,
    ) -> Result<usize, PluginFault> {
        let model = self.sessions.model();
        let at = self.claims.claim(&model.name, &model.plan.inputs, tensor)?;
        let mut buffer = [0; MAX_RANK];
        model.accepted(&model.plan.inputs[at], kind.to_abi(), shape, bytes, &mut buffer)?;
        Ok(at)
    }

    fn check_claims(&self) -> Result<(), PluginFault> {
        let model = self.model();
        self.claims.check_complete(&model.name, &model.plan.inputs, |slot| model.requires(slot))
    }

    /// Copies a part of an input into the block of the session.
    fn write_part(&mut self, (at, offset): (usize, usize), part: &Buf) -> Result<(), PluginFault> {
        let bytes = part.bytes as usize;
        let mut source = InputSource { data: part.ptr, bytes, memory: part.memory };
        let session = self.sessions.session();
        let from_gpu = part.memory.memory_type == memory_type::GPU;
        if from_gpu && !session.inputs()[at].is_on_device() && bytes > 0 {
            let data = self.blocks.block(0, bytes);
            // SAFETY: the part is an input of the request, the block has its size.
            unsafe { download_input(&self.device, part, data, bytes)? };
            source = InputSource { data, bytes, memory: Memory::CPU };
        }
        // SAFETY: inputs are valid until the batch is finished. The block on the CPU is read at
        // once, because the session's is there, too.
        unsafe { session.write_input(&self.device, (at, offset), source) }
    }

    fn write_request(&mut self, request: Request<'_>) -> Result<(), PluginFault> {
        for tensor in request.inputs() {
            let bytes = tensor.byte_size();
            let at = self.claim_input(tensor, tensor.dtype(), tensor.shape(), bytes)?;
            let mut offset = 0;
            for part in tensor.raw_parts() {
                self.write_part((at, offset), part)?;
                offset += part.bytes as usize;
            }
        }
        self.check_claims()
    }

    fn write_gathered(&mut self, batch: &Batch<'_>) -> Result<(), PluginFault> {
        let Some(first) = batch.requests().next() else { return Ok(()) };
        for (nth, tensor) in first.inputs().enumerate() {
            let shape = batch.gathered_shape(nth);
            let model = self.sessions.model();
            let at = self.claims.claim(&model.name, &model.plan.inputs, tensor)?;
            let on_device = self.sessions.session().inputs()[at].is_on_device();
            let memory = if on_device { self.device.memory() } else { Memory::CPU };
            let block = batch.gather_buf(nth, memory, None)?;
            let (model, mut buffer) = (self.sessions.model(), [0; MAX_RANK]);
            let slot = &model.plan.inputs[at];
            let kind = tensor.dtype().to_abi();
            model.accepted(slot, kind, &shape, block.bytes as usize, &mut buffer)?;
            self.write_part((at, 0), &block)?;
        }
        self.check_claims()
    }

    /// Runs the batch that was written, and passes on its outputs. The first error is that of the
    /// run, the second that of an output.
    fn run(
        &mut self,
        rows: usize,
        outlet: &mut impl OutputOutlet,
        batch: &Batch<'_>,
    ) -> Result<Result<(), PluginFault>, PluginFault> {
        if self.requested.is_empty() {
            return Ok(Ok(()));
        }
        self.times.inputs_written();
        let ran = self.sessions.run(rows, &self.device);
        batch.mark_compute_end();
        self.times.run_ended();
        self.report.count_run(|| Some(self.sessions.arena_bytes()));
        if let Err(fault) = ran {
            return Err(fault.within(format_args!("model '{}'", self.model().name)));
        }
        let session = self.sessions.session();
        let passed = session.pass_outputs(rows, &self.requested, outlet, &self.device);
        self.times.outputs_passed();
        Ok(passed)
    }
}

impl Executor for PreparedInstance {
    fn failed(&mut self) -> &mut Vec<bool> {
        &mut self.failed
    }

    fn whole_batch(&self) -> bool {
        false
    }

    fn can_merge(&self) -> bool {
        self.model().can_merge()
    }

    fn prepare_merged(&mut self, batch: &Batch<'_>) -> Result<bool, PluginFault> {
        self.begin(batch.rows())?;
        self.write_gathered(batch)?;
        for (nth, request) in batch.requests().enumerate() {
            if !self.failed[nth] {
                self.sessions.add_requested(&mut self.requested, request)?;
            }
        }
        Ok(!self.requested.is_empty())
    }

    fn run_merged(&mut self, batch: &Batch<'_>) -> Result<Option<PluginFault>, PluginFault> {
        let mut outlet = batch;
        batch.mark_compute_start();
        match self.run(batch.rows(), &mut outlet, batch) {
            Ok(Ok(())) => Ok(None),
            // Each request gets its own error, or its own outputs.
            Ok(Err(fault)) | Err(fault) => Ok(Some(fault)),
        }
    }

    fn execute_one(
        &mut self,
        request: Request<'_>,
        batch: &Batch<'_>,
        computing: &mut bool,
    ) -> Result<(), PluginFault> {
        let rows = request.batch_size();
        self.begin(rows)?;
        let written = self.write_request(request);
        if written.is_err() {
            // Copies that were queued before the error read inputs of the request.
            let _ = super::wait_for_stream(&self.device, self.device.stream());
        }
        written?;
        if !std::mem::replace(computing, true) {
            batch.mark_compute_start();
        }
        self.sessions.add_requested(&mut self.requested, request)?;
        let mut response = request.new_response().map_err(PluginFault::from)?;
        self.run(rows, &mut response, batch)??;
        response.send().map_err(PluginFault::from)
    }

    fn clear(&mut self) {
        self.requested.clear();
        self.blocks.trim();
    }
}
