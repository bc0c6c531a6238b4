//! The outputs of a call: blocks of the host to write into, or memory of the library to donate.

use crate::check::{Plan, Slot};
use crate::execute::{Scratch, position};
use crate::fault::Fault;
use crate::model::OnnxModel;
use crate::shape;
use crate::strings;
use crate::types::{self, shape_text};
use crate::value::{self, MAX_RANK, Value};
use std::ptr;
use trtserver_plugin_api::abi::types::{Buf, Place, dtype};
use trtserver_plugin_api::author::{Call, Dtype, Response};

impl Scratch {
    /// Prepares the wanted outputs: a block of the host where the shape is known and `ahead` says so,
    /// else the library's choice. True = at least one block.
    pub fn take_outputs(
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

    /// Hands over what the library made. Outputs in blocks of the host are there already.
    pub fn give_outputs(
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
