//! Gathers an input of all requests of a batch into one block: contiguous tensors by reference,
//! others with one copy.

use super::gpu::{DeviceOutput, GpuInstance};
use super::requests::BatchRequests;
use super::views::InputView;
use crate::text::read_text;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::{LedgerHolder, MemoryTag};
use trtserver_plugin_api::abi::types::{Buf, Memory, memory_type, tensor_flags};
use trtserver_request::buffer::{AlignedBuf, AllocError};
use trtserver_request::pool;
use trtserver_request::{ModelSignature, ShapeText, TensorData};

/// The gathered inputs of a batch, and small blocks of earlier batches for reuse.
#[derive(Default)]
pub struct GatheredInputs {
    done: Vec<GatheredInput>,
    spare: Vec<AlignedBuf>,
}

struct GatheredInput {
    position: u32,
    buf: Buf,
    held: GatheredMemory,
}

/// Keeps the memory of a gathered block, also after its requests are released.
enum GatheredMemory {
    Shared(#[allow(dead_code, reason = "held, not read")] SmallVec<[TensorData; 4]>),
    Copied(AlignedBuf),
    OnDevice(#[allow(dead_code, reason = "held, not read")] DeviceOutput),
}

/// The input of one request, and the owner of its memory.
type InputPart<'a> = (InputView<'a>, TensorData);

impl GatheredInputs {
    /// The input at `position` of all requests as one block, in CPU memory or, with `on_gpu`, on
    /// the GPU of the instance.
    ///
    /// # Errors
    /// The inputs are not compatible or not in that memory, or a request was released before.
    pub fn gather(
        &mut self,
        requests: &BatchRequests,
        position: u32,
        gpu: Option<&Arc<GpuInstance>>,
        on_gpu: bool,
    ) -> Result<Buf> {
        if let Some(done) =
            self.done.iter().find(|d| d.position == position && d.on_gpu() == on_gpu)
        {
            return Ok(done.buf);
        }
        let signature = requests.signature()?;
        let parts = collect_parts(requests, &signature, position)?;
        check_compatible(&signature, &parts)?;
        let (buf, held) = match (contiguous(&parts), gpu) {
            (_, Some(gpu)) if !all_in(&parts, on_gpu) => {
                self.move_parts(&signature, parts, gpu, on_gpu)?
            }
            (Some(buf), _) => {
                (buf, GatheredMemory::Shared(parts.into_iter().map(|(_, owner)| owner).collect()))
            }
            (None, Some(gpu)) if on_gpu => copy_on_device(&signature, &parts, gpu)?,
            (None, _) => self.copy(&signature, &parts)?,
        };
        self.done.push(GatheredInput { position, buf, held });
        Ok(buf)
    }

    fn copy(
        &mut self,
        signature: &ModelSignature,
        parts: &[InputPart<'_>],
    ) -> Result<(Buf, GatheredMemory)> {
        let total = parts.iter().map(|(view, _)| view.buf.bytes as usize).sum();
        let mut block = self
            .take_block(total, signature.owner.tag(LedgerHolder::GatheredInput))
            .map_err(|e| e.refuse(&format!("a gathered input of model '{}'", signature.model)))?;
        let mut rest = &mut block.as_mut()[..total];
        for (view, _) in parts {
            let (to, behind) = rest.split_at_mut(view.buf.bytes as usize);
            if !to.is_empty() {
                // SAFETY: bytes of a request's tensor, kept by its owner in `parts`; the block is
                // separate memory.
                to.copy_from_slice(unsafe { std::slice::from_raw_parts(view.buf.ptr, to.len()) });
            }
            rest = behind;
        }
        let buf = cpu_buf(block.as_mut_ptr(), total as u64);
        Ok((buf, GatheredMemory::Copied(block)))
    }

    /// Gathers parts of which some are not where they are wanted.
    fn move_parts(
        &mut self,
        signature: &ModelSignature,
        mut parts: SmallVec<[InputPart<'_>; 8]>,
        gpu: &GpuInstance,
        on_gpu: bool,
    ) -> Result<(Buf, GatheredMemory)> {
        if on_gpu {
            // SAFETY: names live as long as the views.
            let name = parts.first().map(|(view, _)| unsafe { read_text(view.tensor.name) });
            return Err(Error::unsupported(format!(
                "model '{}': input '{}' cannot be gathered into the memory of {}: it is in CPU memory",
                signature.model,
                name.unwrap_or_default(),
                gpu.location()
            )));
        }
        for (_, data) in &mut parts {
            *data = data.to_cpu()?.into();
        }
        let all: Vec<&[u8]> = parts.iter().filter_map(|(_, data)| data.readable()).collect();
        let tag = signature.owner.tag(LedgerHolder::GatheredInput);
        let block = AlignedBuf::try_copy(None, &all, tag)
            .map_err(|e| e.refuse(&format!("a gathered input of model '{}'", signature.model)))?;
        let bytes = all.iter().map(|part| part.len() as u64).sum();
        let mut block = block;
        let buf = cpu_buf(block.as_mut_ptr(), bytes);
        Ok((buf, GatheredMemory::Copied(block)))
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

    /// Ends the batch. Small blocks are kept for the next one, large ones go to the pool of all
    /// models; spare blocks that this batch did not use are freed.
    pub fn clear(&mut self) {
        let used = self.done.drain(..).filter_map(|done| match done.held {
            GatheredMemory::Copied(block) => Some(block),
            GatheredMemory::Shared(_) | GatheredMemory::OnDevice(_) => None,
        });
        let mut used = used.peekable();
        if used.peek().is_none() {
            return;
        }
        self.spare = used.filter(|block| block.len() < pool::MIN_SIZE).collect();
    }
}

impl GatheredInput {
    fn on_gpu(&self) -> bool {
        self.buf.memory.memory_type == memory_type::GPU
    }
}

fn cpu_buf(ptr: *mut u8, bytes: u64) -> Buf {
    Buf { ptr, bytes, memory: Memory::CPU, ready: std::ptr::null_mut(), memory_handle: 0 }
}

/// All parts are on the GPU of the instance, or none is.
fn all_in(parts: &[InputPart<'_>], on_gpu: bool) -> bool {
    let is_on_gpu = |buf: &Buf| buf.memory.memory_type == memory_type::GPU;
    parts.iter().all(|(view, _)| is_on_gpu(view.buf) == on_gpu)
}

/// Copies parts that lie apart on the device into one block there.
fn copy_on_device(
    signature: &ModelSignature,
    parts: &[InputPart<'_>],
    gpu: &GpuInstance,
) -> Result<(Buf, GatheredMemory)> {
    let sources: SmallVec<[&Buf; 8]> = parts.iter().map(|(view, _)| view.buf).collect();
    let block = gpu.gather(&sources, signature.owner.tag(LedgerHolder::GatheredInput))?;
    Ok((block.buf(), GatheredMemory::OnDevice(block)))
}

fn collect_parts<'a>(
    requests: &'a BatchRequests,
    signature: &ModelSignature,
    position: u32,
) -> Result<SmallVec<[InputPart<'a>; 8]>> {
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

fn check_compatible(signature: &ModelSignature, parts: &[InputPart<'_>]) -> Result<()> {
    let Some(((first, _), others)) = parts.split_first() else {
        return Err(Error::invalid("an empty batch has nothing to gather"));
    };
    // SAFETY: names live as long as the views.
    let name = || unsafe { read_text(first.tensor.name) };
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
    let any_shape = first.tensor.flags & (tensor_flags::RAGGED | tensor_flags::BATCH) != 0;
    for (other, _) in others {
        // Names of one model share one string, so pointers can be compared.
        if other.tensor.name.p != first.tensor.name.p || other.tensor.dtype != first.tensor.dtype {
            return fault(
                "the requests of the batch have different inputs at this position".into(),
            );
        }
        if !any_shape && first.shape.get(1..) != other.shape.get(1..) {
            return fault(format!(
                "shapes {} and {} differ beyond the batch dimension",
                ShapeText(first.shape),
                ShapeText(other.shape)
            ));
        }
    }
    let uneven = |(view, _): &&InputPart<'_>| view.shape.first() != Some(&i64::from(view.rows));
    match parts.iter().find(uneven).filter(|_| batched && !any_shape && !others.is_empty()) {
        None => Ok(()),
        Some((view, _)) => fault(format!(
            "shape {} does not begin with the batch size {}",
            ShapeText(view.shape),
            view.rows
        )),
    }
}

/// The parts as one piece of memory if they are contiguous: one request, or slices of one block in
/// order.
fn contiguous(parts: &[InputPart<'_>]) -> Option<Buf> {
    let mut with_bytes = parts.iter().map(|(view, _)| view.buf).filter(|buf| buf.bytes > 0);
    let Some(first) = with_bytes.next() else { return parts.first().map(|(view, _)| *view.buf) };
    let mut end = first.ptr.addr() + first.bytes as usize;
    for buf in with_bytes {
        if buf.ptr.addr() != end || buf.ready != first.ready {
            return None;
        }
        end += buf.bytes as usize;
    }
    Some(Buf { bytes: (end - first.ptr.addr()) as u64, ..*first })
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
