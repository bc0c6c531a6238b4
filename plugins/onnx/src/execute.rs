//! One instance at work: a batch of several calls in one run where they fit together (see `merge.rs`),
//! else each call checked, run and answered by itself.
//!
//! A small call like an earlier one is copied into a run that was kept for it (see `kept.rs`). Else
//! inputs are used where the host has them; outputs are written where the host wants them when their
//! shape is known beforehand, and donated to the host when it is not. Strings are the exception.
//! Everything that a call needs is in vectors that keep their room from call to call.

use crate::check::Slot;
use crate::fault::Fault;
use crate::kept::KeptRuns;
use crate::model::OnnxModel;
use crate::runtime;
use crate::value::Value;
use ort_sys::OrtValue;
use std::ffi::c_char;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trtserver_plugin_api::author::{
    AnyThread, Batch, Error, Instance, InstanceContext, Kind, Request,
};

/// A gathering buffer larger than this does not outlive its call.
const KEPT_BYTES: usize = 1 << 20;

pub struct OnnxInstance {
    /// Before the model, whose session they are bound to: dropped first.
    pub kept: KeptRuns,
    pub model: Arc<OnnxModel>,
    pub scratch: Scratch,
}

#[derive(Default)]
pub struct Scratch {
    /// Values over the inputs; freed after each call.
    pub inputs: Vec<Value>,
    /// Values over the host's blocks for outputs, where there are any.
    pub outputs: Vec<Value>,
    pub input_names: Vec<*const c_char>,
    pub input_values: Vec<*const OrtValue>,
    pub output_names: Vec<*const c_char>,
    pub output_values: Vec<*mut OrtValue>,
    /// Position of each wanted output in the plan, and whether the host's block is used.
    pub requested: Vec<(usize, bool)>,
    /// Which inputs of the plan the call has.
    pub seen: Vec<bool>,
    /// Room for inputs that lie in several pieces or off their alignment.
    pub gathered: Vec<Vec<u128>>,
    pub offsets: Vec<usize>,
    /// Addresses of blocks that the host gathered.
    pub lent: Vec<Range<usize>>,
    /// Which calls of the batch have been failed.
    pub failed: Vec<bool>,
}

// SAFETY: sessions and values may be used on any thread, by the runtime's rules; the pointers in the scratch space go to what
// the model owns, or are of use during one call only.
unsafe impl Send for OnnxInstance {}

impl Instance for OnnxInstance {
    type Model = OnnxModel;
    // A session has threads of its own for what is large.
    const ANY_THREAD: AnyThread<Self> = AnyThread::YES;

    fn open(model: &Arc<OnnxModel>, context: &InstanceContext) -> Result<Self, Error> {
        if context.kind() == Kind::Gpu {
            return Err(Error::unsupported(format_args!(
                "instance '{}' of model '{}' is of KIND_GPU, but this plugin runs ONNX models on the \
                 CPU only; the library offers: {}",
                context.name(),
                model.name,
                model.session.runtime.providers().join(", ")
            )));
        }
        Ok(Self { kept: KeptRuns::default(), model: model.clone(), scratch: Scratch::default() })
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        batch.mark_exec_start();
        self.scratch.failed.clear();
        for request in batch.requests() {
            self.scratch.failed.push(request.is_cancelled());
            if request.is_cancelled() {
                request.fail(Error::cancelled("the request was cancelled before it ran"));
            }
        }
        let merged = self.scratch.failed.iter().filter(|failed| !**failed).count() > 1
            && self.answer_all(batch)?;
        if !merged {
            self.answer_each(batch);
        }
        batch.mark_exec_end();
        Ok(())
    }
}

impl OnnxInstance {
    fn answer_each(&mut self, batch: &Batch<'_>) {
        let mut computing = false;
        for (nth, request) in batch.requests().enumerate() {
            if self.scratch.failed[nth] {
                continue;
            }
            if request.is_cancelled() {
                request.fail(Error::cancelled("the request was cancelled before it ran"));
                continue;
            }
            let answered = self.answer(request, batch, &mut computing);
            self.scratch.clear();
            if let Err(fault) = answered {
                request.fail(fault.into());
            }
        }
    }

    fn answer(
        &mut self,
        request: Request<'_>,
        batch: &Batch<'_>,
        computing: &mut bool,
    ) -> Result<(), Fault> {
        let (kept, model, scratch) = (&mut self.kept, &*self.model, &mut self.scratch);
        let mut compute = || {
            if !std::mem::replace(computing, true) {
                batch.mark_compute_start();
            }
        };
        let mut ahead = model.ahead.load(Ordering::Relaxed);
        if !ahead {
            kept.clear();
        } else if let Some(run) = kept.find(model, scratch, request) {
            run.fill(request)?;
            compute();
            let ran = run.run(model);
            batch.mark_compute_end();
            match ran {
                Ok(()) => return run.give(model, request),
                Err(fault) => {
                    kept.forget();
                    if !fault.is_wrong_block() {
                        return Err(fault.within(format_args!("model '{}'", model.name)));
                    }
                    ahead = false; // as below
                }
            }
        }
        let rows = request.batch_size();
        scratch.take_inputs(model, request)?;
        loop {
            let mut response = request.new_response().map_err(Fault::from)?;
            scratch.want(model, request.requested_outputs())?;
            let blocks = scratch.take_outputs(model, rows, &mut response, ahead)?;
            compute();
            let ran = scratch.run(model);
            batch.mark_compute_end();
            match ran {
                // The file may promise a shape that the graph does not keep. That shows only as a
                // refusal to write into a block of the promised size, so try once without blocks.
                Err(fault) if blocks && fault.is_wrong_block() => {
                    drop(response);
                    scratch.clear_outputs();
                    ahead = false;
                }
                Err(fault) => return Err(fault.within(format_args!("model '{}'", model.name))),
                Ok(()) => {
                    if !ahead && model.ahead.swap(false, Ordering::Relaxed) {
                        model.log.warning(format_args!(
                            "model '{}': an output has another shape than its file declares; \
                             declared shapes are not relied on from now on",
                            model.name
                        ));
                    }
                    scratch.give_outputs(model, rows, &mut response)?;
                    return response.send().map_err(Fault::from);
                }
            }
        }
    }
}

impl Scratch {
    pub fn clear(&mut self) {
        self.inputs.clear();
        self.lent.clear();
        self.input_names.clear();
        self.input_values.clear();
        self.gathered.retain(|buffer| buffer.capacity() * size_of::<u128>() <= KEPT_BYTES);
        self.clear_outputs();
    }

    fn clear_outputs(&mut self) {
        // What the library made and nobody took: only after an error. A value over a block of the
        // host is in `outputs` and freed there.
        for (&raw, &(_, block)) in self.output_values.iter().zip(&self.requested) {
            if !block && let Some(runtime) = runtime::current() {
                // SAFETY: null, or a value that was made for us and not given away.
                drop(unsafe { Value::from_raw(runtime, raw) });
            }
        }
        self.outputs.clear();
        self.output_names.clear();
        self.output_values.clear();
        self.requested.clear();
    }

    pub fn run(&mut self, model: &OnnxModel) -> Result<(), Fault> {
        // The library refuses a run for nothing; there is nothing to compute then either.
        if self.output_names.is_empty() {
            return Ok(());
        }
        // SAFETY: names live in the plan, values in this scratch; the blocks of outputs are distinct.
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

/// By the configuration's position if the tensor has one and it is right, else by name.
pub fn position(slots: &[Slot], index: Option<usize>, name: &str) -> Option<usize> {
    match index {
        Some(at) if slots.get(at).is_some_and(|slot| slot.name == name) => Some(at),
        _ => slots.iter().position(|slot| slot.name == name),
    }
}
