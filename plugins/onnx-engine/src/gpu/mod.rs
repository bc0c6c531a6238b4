//! Instances on a GPU: a session of their own, on the compute stream of the instance.
//!
//! Inputs are in device memory when a batch arrives, and outputs stay there: both are bound to the
//! session where they are. The run queues its work on the host's stream and waits for it: the
//! library frees pinned memory in callbacks of the driver, which ends the process, when it is told
//! not to wait on a stream that is not its own. The host sends the responses behind an event.
//!
//! ```text
//! mod.rs ── tensors.rs    inputs and outputs of a run of any size, bound
//!        ├─ session.rs    the session, its arena;  arena_report.rs
//!        ├─ fault.rs      errors of the GPU
//!        └─ preload.rs    libraries of CUDA
//!
//! prepared_instance.rs     an instance that is prepared for some batch sizes
//!        ├─ prepared.rs       its sessions;  open_prepared.rs: opened and warmed
//!        ├─ buckets.rs        which sizes, for which models
//!        ├─ row_proof.rs      whether batches may be padded
//!        ├─ step_times.rs     how long the steps of a batch take
//!        └─ fixed_session.rs, fixed_outputs.rs, fixed_block.rs   a session of one size, in memory that stays
//! ```

mod arena_report;
pub mod buckets;
mod fault;
mod fixed_block;
mod fixed_outputs;
mod fixed_session;
mod open_prepared;
pub mod preload;
mod prepared;
mod prepared_instance;
mod row_proof;
pub mod session;
mod step_times;
mod tensors;

pub use open_prepared::open_prepared;
pub use prepared_instance::PreparedInstance;

use crate::execute::is_wrong_block;
use crate::model::OnnxModel;
use crate::outputs::add_requested;
use arena_report::ArenaReport;
use session::GpuSession;
use std::sync::Arc;
use std::time::Duration;
use tensors::BoundTensors;
use trtserver_framework::execute::Executor;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::outlet::OutputOutlet;
use trtserver_plugin_api::author::{Batch, Device, Error, Request, Scope, Stream};

/// How long a thread sleeps between two looks at a stream.
const POLL: Duration = Duration::from_micros(20);

/// Waits for the work that was queued on the stream so far.
///
/// # Errors
/// The device is lost, which does no more work.
pub fn wait_for_stream(device: &Device, stream: Stream) -> Result<(), Error> {
    let end = device.event()?;
    end.record(stream)?;
    while !end.is_reached()? {
        std::thread::sleep(POLL);
    }
    Ok(())
}

pub struct GpuInstance {
    /// Before the session, which its values belong to.
    bound: BoundTensors,
    session: GpuSession,
    device: Device,
    report: ArenaReport,
}

impl GpuInstance {
    /// `model` has a session on the device.
    pub fn new(model: OnnxModel, device: Device, scope: &Scope) -> Result<Self, PluginFault> {
        let session = GpuSession::new(Arc::new(model), device.id(), None)?;
        let report = ArenaReport::new(&session.model.name, &device, scope);
        report.report(session.arena_bytes());
        Ok(Self { bound: BoundTensors::default(), session, device, report })
    }

    /// Binds the requested outputs and runs. The error is explained.
    fn run(
        &mut self,
        rows: usize,
        outlet: &mut impl OutputOutlet,
        preallocate: bool,
    ) -> Result<(), PluginFault> {
        self.bound.prepare_outputs(
            &mut self.session,
            rows,
            outlet,
            self.device.memory(),
            preallocate,
        )?;
        if self.bound.requested.is_empty() {
            return Ok(()); // the library rejects a run without outputs
        }
        // SAFETY: inputs are valid until the host reuses them, behind the work on the stream;
        // blocks of outputs as well.
        let ran = unsafe { self.session.run() };
        self.report.count_run(|| self.session.arena_bytes());
        ran.map_err(|fault| fault::explain_fault(fault, &self.device))
    }
}

impl Executor for GpuInstance {
    fn failed(&mut self) -> &mut Vec<bool> {
        &mut self.bound.failed
    }

    fn whole_batch(&self) -> bool {
        self.session.model.plan.whole_batch
    }

    fn can_merge(&self) -> bool {
        self.session.model.can_merge()
    }

    fn prepare_merged(&mut self, batch: &Batch<'_>) -> Result<bool, PluginFault> {
        self.bound.bind_gathered(&mut self.session, batch, self.device.memory())?;
        Ok(!self.bound.requested.is_empty())
    }

    fn run_merged(&mut self, batch: &Batch<'_>) -> Result<Option<PluginFault>, PluginFault> {
        let model = &self.session.model;
        let preallocate = !model.plan.whole_batch && model.findings.preallocates();
        let mut outlet = batch;
        batch.mark_compute_start();
        if let Err(fault) = self.run(batch.rows(), &mut outlet, preallocate) {
            if is_wrong_block(&fault) {
                // Which output it is, the next merged run shows.
                self.session.model.findings.stop_preallocating();
            }
            let name = &self.session.model.name;
            return Ok(Some(fault.within(format_args!("model '{name}'"))));
        }
        // An output that cannot be divided among the requests: each gets its own.
        Ok(self.bound.pass_outputs(&self.session, batch.rows(), &mut outlet, &self.device).err())
    }

    fn execute_one(
        &mut self,
        request: Request<'_>,
        batch: &Batch<'_>,
        computing: &mut bool,
    ) -> Result<(), PluginFault> {
        self.bound.bind_inputs(&mut self.session, request, &self.device)?;
        if !std::mem::replace(computing, true) {
            batch.mark_compute_start();
        }
        let rows = request.batch_size();
        let mut preallocate = self.session.model.findings.preallocates();
        loop {
            let mut response = request.new_response().map_err(PluginFault::from)?;
            let model = &self.session.model;
            add_requested(&mut self.bound.requested, model, request.requested_outputs())?;
            match self.run(rows, &mut response, preallocate) {
                Ok(()) => {
                    if !preallocate {
                        self.session.model.findings.stop_preallocating();
                    }
                    self.bound.pass_outputs(&self.session, rows, &mut response, &self.device)?;
                    return response.send().map_err(PluginFault::from);
                }
                // As on the CPU: see `execute.rs`.
                Err(fault) if preallocate && is_wrong_block(&fault) => {
                    drop(response);
                    self.bound.clear_outputs(&mut self.session);
                    preallocate = false;
                }
                Err(fault) => {
                    let name = &self.session.model.name;
                    return Err(fault.within(format_args!("model '{name}'")));
                }
            }
        }
    }

    fn clear(&mut self) {
        self.bound.clear(&mut self.session);
    }
}
