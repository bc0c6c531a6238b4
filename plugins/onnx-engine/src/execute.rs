//! Executes batches: several requests in one run where their shapes agree (see `merge.rs`), else
//! each request by itself.
//!
//! A small request like an earlier one is copied into a cached run (see `cached_runs.rs`). Else
//! inputs are used in place; outputs are written to memory of the host when their shape is known
//! before the run, and adopted by the host when it is not. Strings are copied. Per-request data is
//! in vectors that keep their capacity.

use crate::cached_runs::CachedRuns;
use crate::model::OnnxModel;
use crate::runtime;
use crate::value::OnnxValue;
use ort_sys::OrtValue;
use std::ffi::c_char;
use std::ops::Range;
use std::sync::Arc;
use trtserver_framework::execute::Executor;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::{InputBlocks, InputClaims};
use trtserver_plugin_api::author::{Batch, Request};

pub struct OnnxInstance {
    /// Before the model in this struct, so that it is dropped first: its bindings refer to the
    /// model's session.
    pub cached: CachedRuns,
    pub model: Arc<OnnxModel>,
    pub scratch: RunScratch,
}

#[derive(Default)]
pub struct RunScratch {
    /// Values over the inputs; freed after each request.
    pub inputs: Vec<OnnxValue>,
    /// Values over the host's blocks for outputs, if any.
    pub outputs: Vec<OnnxValue>,
    pub input_names: Vec<*const c_char>,
    pub input_values: Vec<*const OrtValue>,
    pub output_names: Vec<*const c_char>,
    pub output_values: Vec<*mut OrtValue>,
    /// Position of each requested output in the plan, and whether the host's block is used.
    pub requested: Vec<(usize, bool)>,
    pub claims: InputClaims,
    /// For inputs that are in several parts or unaligned.
    pub blocks: InputBlocks,
    pub offsets: Vec<usize>,
    /// Addresses of input memory owned by the host.
    pub borrowed: Vec<Range<usize>>,
    /// Which requests of the batch have failed.
    pub failed: Vec<bool>,
}

// SAFETY: ONNX Runtime allows using sessions and values on any thread; pointers in the scratch
// space point into the model, or are used during one call only.
unsafe impl Send for OnnxInstance {}

impl OnnxInstance {
    pub fn new(model: &Arc<OnnxModel>) -> Self {
        Self { cached: CachedRuns::default(), model: model.clone(), scratch: RunScratch::default() }
    }
}

impl Executor for OnnxInstance {
    fn failed(&mut self) -> &mut Vec<bool> {
        &mut self.scratch.failed
    }

    fn whole_batch(&self) -> bool {
        self.model.plan.whole_batch
    }

    fn can_merge(&self) -> bool {
        self.model.can_merge()
    }

    fn prepare_merged(&mut self, batch: &Batch<'_>) -> Result<bool, PluginFault> {
        self.scratch.prepare_merged(&self.model, batch)?;
        Ok(!self.scratch.requested.is_empty())
    }

    fn run_merged(&mut self, batch: &Batch<'_>) -> Result<Option<PluginFault>, PluginFault> {
        self.scratch.run_merged(&self.model, batch)
    }

    fn clear(&mut self) {
        self.scratch.clear();
    }

    fn execute_one(
        &mut self,
        request: Request<'_>,
        batch: &Batch<'_>,
        computing: &mut bool,
    ) -> Result<(), PluginFault> {
        let (cached, model, scratch) = (&mut self.cached, &*self.model, &mut self.scratch);
        let mut compute = || {
            if !std::mem::replace(computing, true) {
                batch.mark_compute_start();
            }
        };
        let mut preallocate = model.findings.preallocates();
        if !preallocate {
            cached.clear();
        } else if let Some(run) = cached.find(model, scratch, request) {
            run.fill(request)?;
            compute();
            let ran = run.run(model);
            batch.mark_compute_end();
            match ran {
                Ok(()) => return run.respond(model, request),
                Err(fault) => {
                    cached.remove_found();
                    if !is_wrong_block(&fault) {
                        return Err(fault.within(format_args!("model '{}'", model.name)));
                    }
                    preallocate = false; // as below
                }
            }
        }
        let rows = request.batch_size();
        scratch.prepare_inputs(model, request)?;
        loop {
            let mut response = request.new_response().map_err(PluginFault::from)?;
            scratch.add_requested(model, request.requested_outputs())?;
            let blocks = scratch.prepare_outputs(model, rows, &mut response, preallocate)?;
            compute();
            let ran = scratch.run(model);
            batch.mark_compute_end();
            match ran {
                // The graph may produce another shape than the file declares. The library then
                // refuses to write into a block of the declared size, so retry once without blocks.
                Err(fault) if blocks && is_wrong_block(&fault) => {
                    drop(response);
                    scratch.clear_outputs();
                    preallocate = false;
                }
                Err(fault) => return Err(fault.within(format_args!("model '{}'", model.name))),
                Ok(()) => {
                    if !preallocate {
                        model.findings.stop_preallocating();
                    }
                    scratch.pass_outputs(model, rows, &mut response)?;
                    return response.send().map_err(PluginFault::from);
                }
            }
        }
    }
}

impl RunScratch {
    pub fn clear(&mut self) {
        self.inputs.clear();
        self.borrowed.clear();
        self.input_names.clear();
        self.input_values.clear();
        self.blocks.trim();
        self.clear_outputs();
    }

    fn clear_outputs(&mut self) {
        // Outputs that the library allocated and that were not passed on: only after an error.
        // Values over blocks of the host are in `outputs` and freed there.
        for (&raw, &(_, block)) in self.output_values.iter().zip(&self.requested) {
            if !block && let Some(runtime) = runtime::opened_runtime() {
                // SAFETY: null, or a value that the run allocated and that was not passed on.
                drop(unsafe { OnnxValue::from_raw(runtime, raw) });
            }
        }
        self.outputs.clear();
        self.output_names.clear();
        self.output_values.clear();
        self.requested.clear();
    }

    pub fn run(&mut self, model: &OnnxModel) -> Result<(), PluginFault> {
        // The library rejects a run without outputs.
        if self.output_names.is_empty() {
            return Ok(());
        }
        // SAFETY: names live in the plan, values in this scratch; the blocks of outputs are
        // distinct.
        unsafe {
            model.session.run(
                &self.input_names,
                &self.input_values,
                &self.output_names,
                &mut self.output_values,
            )
        }
    }
}

/// ONNX Runtime reports that an output has another shape than the block provided for it.
pub fn is_wrong_block(fault: &PluginFault) -> bool {
    // There is no error code for it: the first text is that of new releases, the second that of
    // older ones.
    fault.text.contains("pre-allocated") || fault.text.contains("shape verification failed")
}
