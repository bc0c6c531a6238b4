//! Several calls in one run: inputs gathered by the host, outputs written where the host cuts them up.
//!
//! Everything that may be wrong with a single call is looked at first, with nothing done yet. If
//! anything is, or if the calls do not fit together, each call goes its own way and gets its own error.
//! So it does when the run fails: the values of one call may be to blame, and the others are not.

use crate::execute::{OnnxInstance, Scratch};
use crate::fault::Fault;
use crate::inputs::accepted;
use crate::model::OnnxModel;
use crate::strings;
use crate::types;
use crate::value::{MAX_RANK, Value};
use std::sync::atomic::Ordering;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Batch, Error, Request, Tensor};

impl OnnxInstance {
    /// Answers all calls that have not failed; false = each must be answered by itself.
    ///
    /// # Errors
    /// Of what the run made, for all of them.
    pub fn answer_all(&mut self, batch: &Batch<'_>) -> Result<bool, Error> {
        let (model, scratch) = (&*self.model, &mut self.scratch);
        if !model.plan.batching || !alike(batch) {
            return Ok(false);
        }
        let prepared = scratch.take_all(model, batch).is_ok() && !scratch.requested.is_empty();
        let answered = if prepared { scratch.run_all(model, batch) } else { Ok(false) };
        scratch.clear();
        Ok(answered?)
    }
}

impl Scratch {
    /// Values over the gathered inputs, and the outputs that any of the calls wants.
    fn take_all(&mut self, model: &OnnxModel, batch: &Batch<'_>) -> Result<(), Fault> {
        self.expect_inputs(model);
        let Some(first) = batch.requests().next() else { return Ok(()) };
        for (nth, tensor) in first.inputs().enumerate() {
            let slot = self.claim(model, tensor)?;
            let gathered = batch.gather(nth)?;
            let (kind, data) = (gathered.dtype().to_abi(), gathered.bytes());
            let mut room = [0; MAX_RANK];
            let shape = accepted(model, slot, kind, gathered.shape(), data.len(), &mut room)?;
            let runtime = model.session.runtime;
            let value = if slot.dtype == dtype::STRING {
                strings::decode(runtime, &slot.name, shape, data)?
            } else {
                let at = data.as_ptr().addr();
                if !data.is_empty() && !at.is_multiple_of(types::size(slot.dtype)) {
                    return Err(Fault::internal("a gathered block is not aligned"));
                }
                self.lent.push(at..at + data.len());
                // SAFETY: the host's block stays put until the batch is over, longer than the value; it
                // is aligned, and the library only reads inputs.
                unsafe {
                    let data = data.as_ptr().cast_mut();
                    Value::over(runtime, slot.element, shape, data, gathered.bytes().len())?
                }
            };
            self.add_input(slot, value);
        }
        self.all_claimed(model)?;
        for (nth, request) in batch.requests().enumerate() {
            if !self.failed[nth] {
                self.want(model, request.requested_outputs())?;
            }
        }
        Ok(())
    }

    /// False: the run failed. The calls one by one will find out whose fault it is; should the file be wrong
    /// about the shape of an output, they will remember it.
    fn run_all(&mut self, model: &OnnxModel, batch: &Batch<'_>) -> Result<bool, Fault> {
        let ahead = model.ahead.load(Ordering::Relaxed);
        let mut outlet = batch;
        self.take_outputs(model, batch.rows(), &mut outlet, ahead)?;
        batch.mark_compute_start();
        let ran = self.run(model);
        batch.mark_compute_end();
        if ran.is_err() {
            return Ok(false);
        }
        self.give_outputs(model, batch.rows(), &mut outlet)?;
        Ok(true)
    }
}

/// Whether the calls have the same inputs, each as large as its shape says.
fn alike(batch: &Batch<'_>) -> bool {
    let Some(first) = batch.requests().next() else { return false };
    batch.requests().all(|request| {
        first.inputs().len() == request.inputs().len()
            && first.inputs().zip(request.inputs()).all(|(a, b)| same(a, b) && sound(request, b))
    })
}

fn same(a: Tensor<'_>, b: Tensor<'_>) -> bool {
    a.dtype() == b.dtype()
        && a.shape().get(1..) == b.shape().get(1..)
        && (a.index().is_some() && a.index() == b.index() || a.name() == b.name())
}

fn sound(request: Request<'_>, tensor: Tensor<'_>) -> bool {
    let rows = tensor.shape().first().and_then(|&rows| usize::try_from(rows).ok());
    let Some(count) = types::elements(tensor.shape()) else { return false };
    rows == Some(request.batch_size())
        && match tensor.dtype().to_abi() {
            // Where one call has a string too many and the next one too few, only each by itself tells.
            dtype::STRING => tensor.contiguous().is_some_and(|data| {
                let mut found = 0;
                let whole = strings::elements(data).inspect(|_| found += 1).all(|s| s.is_ok());
                whole && found == count
            }),
            kind => count.checked_mul(types::size(kind)) == Some(tensor.byte_size()),
        }
}
