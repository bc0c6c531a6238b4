//! One instance at work: each call of a batch is checked, run and answered by itself.
//!
//! Inputs are used where the host has them; outputs are written where the host wants them when their
//! shape is known beforehand, and donated to the host when it is not. Strings are the exception.
//! Everything that a call needs is in vectors that keep their room from call to call.

use crate::check::{Plan, Slot};
use crate::fault::Fault;
use crate::model::OnnxModel;
use crate::shape;
use crate::strings;
use crate::types::{self, shape_text};
use crate::value::{self, MAX_RANK, Value};
use ort_sys::OrtValue;
use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trtserver_plugin_api::abi::types::{Buf, Place, dtype};
use trtserver_plugin_api::author::{
    Batch, Call, Dtype, Error, Instance, InstanceContext, Kind, Response, Tensor,
};

/// A gathering buffer larger than this does not outlive its call.
const KEPT_BYTES: usize = 1 << 20;

pub struct OnnxInstance {
    model: Arc<OnnxModel>,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    /// Values over the inputs; freed after each call.
    inputs: Vec<Value>,
    /// Values over the host's blocks for outputs, where there are any.
    outputs: Vec<Value>,
    input_names: Vec<*const c_char>,
    input_values: Vec<*const OrtValue>,
    output_names: Vec<*const c_char>,
    output_values: Vec<*mut OrtValue>,
    /// Position of each wanted output in the plan, and whether the host's block is used.
    wanted: Vec<(usize, bool)>,
    /// Which inputs of the plan the call has.
    seen: Vec<bool>,
    /// Room for inputs that lie in several pieces or off their alignment.
    gathered: Vec<Vec<u128>>,
    offsets: Vec<usize>,
}

impl Instance for OnnxInstance {
    type Model = OnnxModel;

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
        Ok(Self { model: model.clone(), scratch: Scratch::default() })
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        batch.mark_start();
        let mut computing = false;
        for call in batch.calls() {
            if call.is_cancelled() {
                call.fail(Error::cancelled("the request was cancelled before it ran"));
                continue;
            }
            let answered = self.answer(call, batch, &mut computing);
            self.scratch.clear();
            if let Err(fault) = answered {
                call.fail(fault.into());
            }
        }
        batch.mark_end();
        Ok(())
    }
}

impl OnnxInstance {
    fn answer(
        &mut self,
        call: Call<'_>,
        batch: &Batch<'_>,
        computing: &mut bool,
    ) -> Result<(), Fault> {
        let (model, scratch) = (&*self.model, &mut self.scratch);
        scratch.take_inputs(model, call)?;
        let mut ahead = model.ahead.load(Ordering::Relaxed);
        loop {
            let mut response = call.respond().map_err(Fault::from)?;
            let blocks = scratch.take_outputs(model, call, &mut response, ahead)?;
            if !*computing {
                batch.mark_compute();
                *computing = true;
            }
            let ran = scratch.run(model);
            batch.mark_output();
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
                    scratch.give_outputs(model, call, &mut response)?;
                    return response.send().map_err(Fault::from);
                }
            }
        }
    }
}

impl Scratch {
    fn clear(&mut self) {
        self.inputs.clear();
        self.input_names.clear();
        self.input_values.clear();
        self.gathered.retain(|buffer| buffer.capacity() * size_of::<u128>() <= KEPT_BYTES);
        self.clear_outputs();
    }

    fn clear_outputs(&mut self) {
        // What the library made and nobody took: only after an error. A value over a block of the
        // host is in `outputs` and freed there.
        for (&raw, &(_, block)) in self.output_values.iter().zip(&self.wanted) {
            if !block && let Some(first) = self.inputs.first() {
                // SAFETY: null, or a value that was made for us and not given away.
                drop(unsafe { Value::from_raw(first.runtime(), raw) });
            }
        }
        self.outputs.clear();
        self.output_names.clear();
        self.output_values.clear();
        self.wanted.clear();
    }

    /// Makes a value of each input, after making sure that the model can take it: with an input
    /// missing, the library would run half of the graph before it complains.
    fn take_inputs(&mut self, model: &OnnxModel, call: Call<'_>) -> Result<(), Fault> {
        let plan = &model.plan;
        self.seen.clear();
        self.seen.resize(plan.inputs.len(), false);
        for (nth, tensor) in call.inputs().enumerate() {
            let at = position(&plan.inputs, tensor.index(), tensor.name()).ok_or_else(|| {
                Fault::invalid(format!(
                    "unexpected inference input '{}' for model '{}'",
                    tensor.name(),
                    model.name
                ))
            })?;
            if std::mem::replace(&mut self.seen[at], true) {
                return Err(Fault::invalid(format!(
                    "input '{}' for model '{}' is given twice",
                    tensor.name(),
                    model.name
                )));
            }
            let slot = &plan.inputs[at];
            let value = self.value_of(model, slot, tensor, nth)?;
            self.input_names.push(slot.c_name.as_ptr());
            self.input_values.push(value.as_ptr());
            self.inputs.push(value);
        }
        let missing = plan.inputs.iter().zip(&self.seen).find(|(slot, seen)| {
            // Optional for callers is not optional for the model, unless the file has a value for it.
            !**seen && model.requires(slot)
        });
        match missing {
            None => Ok(()),
            Some((slot, _)) => Err(Fault::invalid(format!(
                "input '{}' is required by model '{}' and was not given",
                slot.name, model.name
            ))),
        }
    }

    fn value_of(
        &mut self,
        model: &OnnxModel,
        slot: &Slot,
        tensor: Tensor<'_>,
        nth: usize,
    ) -> Result<Value, Fault> {
        if tensor.dtype().to_abi() != slot.dtype {
            return Err(Fault::invalid(format!(
                "inference input '{}' data-type is '{}', model '{}' expects '{}'",
                slot.name,
                types::name(tensor.dtype().to_abi()),
                model.name,
                types::name(slot.dtype)
            )));
        }
        let mut room = [0; MAX_RANK];
        let shape = shape::for_model(slot, model.plan.batching, tensor.shape(), &mut room)
            .ok_or_else(|| {
                Fault::invalid(format!(
                    "unexpected shape for input '{}' for model '{}'. Expected {}, got {}",
                    slot.name,
                    model.name,
                    shape_text(&slot.dims),
                    shape_text(tensor.shape())
                ))
            })?;
        let bytes = tensor.byte_size();
        let runtime = model.session.runtime;
        if slot.dtype == dtype::STRING {
            if let Some(data) = tensor.contiguous() {
                return strings::decode(runtime, &slot.name, shape, data);
            }
            let data = self.gather(tensor, nth)?;
            // SAFETY: `bytes` bytes were just gathered there.
            let data = unsafe { std::slice::from_raw_parts(data, bytes) };
            return strings::decode(runtime, &slot.name, shape, data);
        }
        let size = types::size(slot.dtype);
        let expected = types::elements(shape).and_then(|n| n.checked_mul(size));
        if expected != Some(bytes) {
            return Err(Fault::invalid(format!(
                "unexpected total byte size {bytes} for input '{}' of model '{}' with shape {}, \
                 expecting {}",
                slot.name,
                model.name,
                shape_text(shape),
                expected.map_or_else(|| "less".to_owned(), |n| n.to_string())
            )));
        }
        let data = match tensor.contiguous() {
            Some(data) if data.as_ptr().addr().is_multiple_of(size) => data.as_ptr().cast_mut(),
            _ => self.gather(tensor, nth)?,
        };
        // SAFETY: the host's memory stays put until the call is over, the gathered until the values
        // are dropped in `clear`; both are aligned. The library only reads inputs.
        unsafe { Value::over(runtime, slot.element, shape, data, bytes) }
    }

    /// Copies the pieces of an input together.
    fn gather(&mut self, tensor: Tensor<'_>, nth: usize) -> Result<*mut u8, Fault> {
        let total: usize = tensor.parts().map(<[u8]>::len).sum();
        if total != tensor.byte_size() {
            return Err(Fault::internal(format!(
                "input '{}': {total} of {} bytes can be read",
                tensor.name(),
                tensor.byte_size()
            )));
        }
        if self.gathered.len() <= nth {
            self.gathered.resize_with(nth + 1, Vec::new);
        }
        let buffer = &mut self.gathered[nth];
        buffer.clear();
        buffer.resize(total.div_ceil(size_of::<u128>()), 0);
        let start = buffer.as_mut_ptr().cast::<u8>();
        let mut at = 0;
        for part in tensor.parts() {
            // SAFETY: the buffer has room for the sum of all parts.
            unsafe { ptr::copy_nonoverlapping(part.as_ptr(), start.add(at), part.len()) };
            at += part.len();
        }
        Ok(start)
    }

    /// Prepares the wanted outputs: a block of the host where the shape is known and `ahead` says so,
    /// else the library's choice. True = at least one block.
    fn take_outputs(
        &mut self,
        model: &OnnxModel,
        call: Call<'_>,
        response: &mut Response<'_>,
        ahead: bool,
    ) -> Result<bool, Fault> {
        let Plan { outputs, batching, .. } = &model.plan;
        let mut blocks = false;
        for wanted in call.outputs() {
            let at = position(outputs, wanted.index(), wanted.name()).ok_or_else(|| {
                Fault::invalid(format!(
                    "unexpected inference output '{}' for model '{}'",
                    wanted.name(),
                    model.name
                ))
            })?;
            let slot = &outputs[at];
            let mut raw = ptr::null_mut();
            let mut room = [0; MAX_RANK];
            let rows = batching.then(|| call.batch_size());
            let known = if ahead { shape::before_run(slot, rows, &mut room) } else { None };
            if let Some((shape, bytes)) = known {
                let (data, n) = response
                    .output_ptr(&slot.name, Dtype::from_abi(slot.dtype), shape, bytes)
                    .map_err(Fault::from)?;
                if n >= bytes && !data.is_null() {
                    // SAFETY: the block is ours until the response is sent, aligned to 64 bytes; the
                    // value over it is dropped in `clear_outputs`.
                    let value = unsafe {
                        Value::over(model.session.runtime, slot.element, shape, data, bytes)?
                    };
                    raw = value.as_ptr();
                    self.outputs.push(value);
                }
            }
            blocks |= !raw.is_null();
            self.output_names.push(slot.c_name.as_ptr());
            self.output_values.push(raw);
            self.wanted.push((at, !raw.is_null()));
        }
        Ok(blocks)
    }

    fn run(&mut self, model: &OnnxModel) -> Result<(), Fault> {
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

    /// Hands over what the library made. Outputs in blocks of the host are there already.
    fn give_outputs(
        &mut self,
        model: &OnnxModel,
        call: Call<'_>,
        response: &mut Response<'_>,
    ) -> Result<(), Fault> {
        for nth in 0..self.wanted.len() {
            let (at, block) = self.wanted[nth];
            if block {
                continue;
            }
            let raw = std::mem::replace(&mut self.output_values[nth], ptr::null_mut());
            // SAFETY: made by the run for us, taken out of the list of what is still to be freed.
            let value = unsafe { Value::from_raw(model.session.runtime, raw)? };
            let slot = &model.plan.outputs[at];
            self.give(model, slot, call, response, value).map_err(|fault| {
                fault.within(format_args!("model '{}', output '{}'", model.name, slot.name))
            })?;
        }
        Ok(())
    }

    fn give(
        &mut self,
        model: &OnnxModel,
        slot: &Slot,
        call: Call<'_>,
        response: &mut Response<'_>,
        value: Value,
    ) -> Result<(), Fault> {
        let mut room = [0; MAX_RANK];
        let (kind, mut rank) = value.describe(&mut room)?;
        if kind != slot.dtype {
            return Err(Fault::internal(format!(
                "the model gave {} instead of {}",
                types::name(kind),
                types::name(slot.dtype)
            )));
        }
        if slot.scalar && rank == 0 {
            (room[0], rank) = (1, 1);
        }
        let shape = &room[..rank];
        if model.plan.batching && shape.first() != i64::try_from(call.batch_size()).ok().as_ref() {
            return Err(Fault::internal(format!(
                "shape {} does not begin with the batch size {}",
                shape_text(shape),
                call.batch_size()
            )));
        }
        let count = types::elements(shape).unwrap_or(0);
        let kind = Dtype::from_abi(kind);
        if slot.dtype == dtype::STRING {
            let bytes = strings::encoded_size(&value, count)?;
            let to = response.output(&slot.name, kind, shape, bytes).map_err(Fault::from)?;
            return match to.get_mut(..bytes) {
                Some(to) => strings::encode(&value, count, to, &mut self.offsets),
                None => Ok(()), // nobody wants it
            };
        }
        let bytes = count * types::size(slot.dtype);
        let data = if bytes == 0 { ptr::null_mut() } else { value.data()? };
        if self.is_borrowed(data, call) {
            // The library passes an input through as an output by sharing its memory, which is the
            // host's and gone with the call.
            let to = response.output(&slot.name, kind, shape, bytes).map_err(Fault::from)?;
            if let Some(to) = to.get_mut(..bytes) {
                // SAFETY: `bytes` bytes of a live tensor; the host's new block is elsewhere.
                unsafe { ptr::copy_nonoverlapping(data, to.as_mut_ptr(), bytes) };
            }
            return Ok(());
        }
        let part = Buf {
            ptr: data,
            bytes: bytes as u64,
            place: Place::CPU,
            ready: ptr::null_mut(),
            lease: 0,
        };
        // SAFETY: the memory belongs to the value, which lives until the host releases it.
        unsafe {
            response
                .adopt_raw(&slot.name, kind, shape, &[part], value::release, value.into_raw())
                .map_err(Fault::from)
        }
    }

    fn is_borrowed(&self, data: *mut u8, call: Call<'_>) -> bool {
        let at = data.addr();
        let host = call.inputs().any(|input| {
            input.parts().any(|part| {
                part.as_ptr_range().start.addr() <= at && at < part.as_ptr_range().end.addr()
            })
        });
        host || self.gathered.iter().any(|buffer| {
            let range = buffer.as_ptr_range();
            range.start.addr() <= at && at < range.end.addr()
        })
    }
}

/// By the configuration's position if the tensor has one and it is right, else by name.
fn position(slots: &[Slot], index: Option<usize>, name: &str) -> Option<usize> {
    match index {
        Some(at) if slots.get(at).is_some_and(|slot| slot.name == name) => Some(at),
        _ => slots.iter().position(|slot| slot.name == name),
    }
}
