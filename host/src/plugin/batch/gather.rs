//! Gathers an input of all requests of a batch into one block: contiguous tensors by reference, others with one copy.

use super::requests::BatchRequests;
use super::views::InputView;
use crate::error::{Error, Result};
use crate::ledger::{Holder, MemoryTag};
use crate::plugin::text::read;
use crate::request::buffer::{AlignedBuf, AllocError};
use crate::request::pool;
use crate::request::{ShapeText, Signature, TensorData};
use smallvec::SmallVec;
use trtserver_plugin_api::abi::types::{Buf, Memory, tensor_flags};

/// The gathered inputs of a batch, and small blocks of earlier batches for reuse.
#[derive(Default)]
pub struct GatheredInputs {
    done: Vec<GatheredInput>,
    spare: Vec<AlignedBuf>,
}

struct GatheredInput {
    position: u32,
    buf: Buf,
    held: Held,
}

/// Keeps the memory of a gathered block, also after its requests are released.
enum Held {
    Shared(#[allow(dead_code, reason = "held, not read")] SmallVec<[TensorData; 4]>),
    Copied(AlignedBuf),
}

/// The input of one request, and the owner of its memory.
type Part<'a> = (InputView<'a>, TensorData);

impl GatheredInputs {
    /// The input at `position` of all requests as one block.
    ///
    /// # Errors
    /// The inputs are not compatible, or a request was released before.
    pub fn gather(&mut self, requests: &BatchRequests, position: u32) -> Result<Buf> {
        if let Some(done) = self.done.iter().find(|d| d.position == position) {
            return Ok(done.buf);
        }
        let signature = requests.signature()?;
        let parts = parts_of(requests, &signature, position)?;
        check_compatible(&signature, &parts)?;
        let (buf, held) = match contiguous(&parts) {
            Some(buf) => (buf, Held::Shared(parts.into_iter().map(|(_, owner)| owner).collect())),
            None => self.copy(&signature, &parts)?,
        };
        self.done.push(GatheredInput { position, buf, held });
        Ok(buf)
    }

    fn copy(&mut self, signature: &Signature, parts: &[Part<'_>]) -> Result<(Buf, Held)> {
        let total = parts.iter().map(|(view, _)| view.buf.bytes as usize).sum();
        let mut block = self
            .take_block(total, signature.owner.tag(Holder::GatheredInput))
            .map_err(|e| e.refuse(&format!("a gathered input of model '{}'", signature.model)))?;
        let mut rest = &mut block.as_mut()[..total];
        for (view, _) in parts {
            let (to, behind) = rest.split_at_mut(view.buf.bytes as usize);
            if !to.is_empty() {
                // SAFETY: bytes of a request's tensor, kept by its owner in `parts`; the block is separate
                // memory.
                to.copy_from_slice(unsafe { std::slice::from_raw_parts(view.buf.ptr, to.len()) });
            }
            rest = behind;
        }
        let (ptr, bytes) = (block.as_mut_ptr(), total as u64);
        let buf =
            Buf { ptr, bytes, memory: Memory::CPU, ready: std::ptr::null_mut(), memory_handle: 0 };
        Ok((buf, Held::Copied(block)))
    }

    /// The smallest spare block that is large enough, or a new one.
    fn take_block(&mut self, bytes: usize, tag: MemoryTag) -> Result<AlignedBuf, AllocError> {
        let fitting = self.spare.iter().enumerate().filter(|(_, block)| block.len() >= bytes);
        match fitting.min_by_key(|(_, block)| block.len()) {
            Some((at, _)) => Ok(self.spare.swap_remove(at)),
            // Not zeroed: every byte is written below.
            None => AlignedBuf::unwritten(bytes, tag),
        }
    }

    /// Ends the batch. Small blocks are kept for the next one, large ones go to the pool of all models; spare blocks that
    /// this batch did not use are freed.
    pub fn clear(&mut self) {
        let used = self.done.drain(..).filter_map(|done| match done.held {
            Held::Copied(block) => Some(block),
            Held::Shared(_) => None,
        });
        let mut used = used.peekable();
        if used.peek().is_none() {
            return;
        }
        self.spare = used.filter(|block| block.len() < pool::MIN_SIZE).collect();
    }
}

fn parts_of<'a>(
    requests: &'a BatchRequests,
    signature: &Signature,
    position: u32,
) -> Result<SmallVec<[Part<'a>; 8]>> {
    let at = position as usize;
    let fault = |what: &str| {
        Error::invalid(format!(
            "model '{}': input number {position} cannot be gathered: {what}",
            signature.model
        ))
    };
    let views = requests.views.inputs_at(at);
    let mut parts = SmallVec::new();
    for (slot, view) in requests.slots().iter().zip(views) {
        let view = view.ok_or_else(|| fault("a request of the batch has fewer inputs"))?;
        // Views and request have the inputs in the same order.
        let owner = slot.input(at).ok_or_else(|| fault("a request was released before"))?;
        parts.push((view, owner));
    }
    Ok(parts)
}

fn check_compatible(signature: &Signature, parts: &[Part<'_>]) -> Result<()> {
    let Some(((first, _), others)) = parts.split_first() else {
        return Err(Error::invalid("an empty batch has nothing to gather"));
    };
    // SAFETY: names live as long as the views.
    let name = || unsafe { read(first.tensor.name) };
    let fault = |what: String| {
        Err(Error::invalid(format!(
            "model '{}': input '{}' cannot be gathered: {what}",
            signature.model,
            name()
        )))
    };
    let batched = signature.batching() && first.tensor.flags & tensor_flags::SHAPE_TENSOR == 0;
    if !others.is_empty() && !batched {
        return fault("it has no batch dimension, and there are several requests".into());
    }
    for (other, _) in others {
        // Names of one model share one string, so pointers can be compared.
        if other.tensor.name.p != first.tensor.name.p || other.tensor.dtype != first.tensor.dtype {
            return fault(
                "the requests of the batch have different inputs at this position".into(),
            );
        }
        if first.shape.get(1..) != other.shape.get(1..) {
            return fault(format!(
                "shapes {} and {} differ beyond the batch dimension",
                ShapeText(first.shape),
                ShapeText(other.shape)
            ));
        }
    }
    let uneven = |(view, _): &&Part<'_>| view.shape.first() != Some(&i64::from(view.rows));
    match parts.iter().find(uneven).filter(|_| batched && !others.is_empty()) {
        None => Ok(()),
        Some((view, _)) => fault(format!(
            "shape {} does not begin with the batch size {}",
            ShapeText(view.shape),
            view.rows
        )),
    }
}

/// The parts as one piece of memory if they are contiguous: one request, or slices of one block in order.
fn contiguous(parts: &[Part<'_>]) -> Option<Buf> {
    let mut with_bytes = parts.iter().map(|(view, _)| view.buf).filter(|buf| buf.bytes > 0);
    let Some(first) = with_bytes.next() else { return parts.first().map(|(view, _)| *view.buf) };
    let mut end = first.ptr.addr() + first.bytes as usize;
    for buf in with_bytes {
        if buf.ptr.addr() != end {
            return None;
        }
        end += buf.bytes as usize;
    }
    Some(Buf { bytes: (end - first.ptr.addr()) as u64, ..*first })
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
