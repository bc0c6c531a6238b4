//! Inputs of a batch in device memory: one block for the batch, in which each input of all requests
//! is contiguous, so that gathering copies nothing.

use super::super::alignment::{check_strings, keeps_batch};
use super::{CopySource, GpuInstance};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_device::{CudaEvent, DeviceMemory, GpuDevice, GpuStreams, PinnedMemory};
use trtserver_request::memory::{MemoryLocation, MemoryOwner, PlacedMemory, PlacedSlice};
use trtserver_request::{DType, InferRequest, InputTensor, ModelSignature, TensorData};

/// Alignment of each input in a block, which frameworks expect of device memory.
const INPUT_ALIGN: usize = 256;

/// Tensors up to this size, on average, are collected in pinned memory and copied by one call: a
/// call costs some microseconds, and copies from pageable memory hold up the thread. The driver
/// copies larger tensors as fast by itself.
const STAGED_TENSOR: usize = 256 << 10;

/// One tensor to be copied.
struct TensorCopy {
    request: usize,
    input: usize,
    offset: usize,
    len: usize,
}

impl GpuInstance {
    /// Copies the inputs of `requests` to device memory. Strings and shape tensors stay in CPU
    /// memory, aligned to `align`; inputs in memory of the device stay where they are. A request
    /// without memory for its inputs is failed and removed; if it belongs to a sequence, so is the
    /// whole batch, because a backend may keep the state of a sequence by position in the batch.
    pub fn place_inputs(
        &self,
        requests: &mut Vec<InferRequest>,
        signature: &ModelSignature,
        align: usize,
    ) {
        let copies = self.copy_inputs(requests, signature, align);
        self.use_copies(requests, &copies);
    }

    /// Makes the work that is queued from now on for `requests` wait for their copies.
    pub fn use_copies(&self, requests: &mut Vec<InferRequest>, copies: &InputCopies) {
        let awaited = copies.blocks.iter().try_for_each(|block| block.wait_on_compute());
        if let Err(e) = awaited {
            fail_all(requests, &self.fault(e));
        }
    }

    /// As [`GpuInstance::place_inputs`], for a batch that begins later: nothing waits for the copies
    /// before [`GpuInstance::use_copies`].
    pub fn copy_inputs(
        &self,
        requests: &mut Vec<InferRequest>,
        signature: &ModelSignature,
        align: usize,
    ) -> InputCopies {
        self.prune_sources();
        let mut copies = InputCopies::default();
        let parts = match self.prepare(requests, signature, align) {
            Ok(parts) => parts,
            Err(e) => {
                fail_all(requests, &self.fault(e));
                return copies;
            }
        };
        if parts.is_empty() {
            return copies;
        }
        let uploaded = self.upload(requests, &parts);
        // While the device copies.
        self.streams.device.pinned().pin_wanted(self.streams.device.context());
        let e = match uploaded {
            Ok(block) => {
                copies.blocks.extend(block);
                return copies;
            }
            Err(e) => e,
        };
        if e.code != Code::ResourceExhausted || requests.len() == 1 || keeps_batch(requests) {
            fail_all(requests, &self.fault(e));
            return copies;
        }
        let mut at = 0;
        while at < requests.len() {
            match self.upload_one(&mut requests[at], signature, align) {
                Ok(block) => {
                    copies.blocks.extend(block);
                    at += 1;
                }
                Err(e) => drop(requests.remove(at).responder.finish(Err(self.fault(e)))),
            }
        }
        copies
    }

    fn upload_one(
        &self,
        request: &mut InferRequest,
        signature: &ModelSignature,
        align: usize,
    ) -> Result<Option<Arc<InputBlock>>> {
        let requests = std::slice::from_mut(request);
        let parts = self.prepare(requests, signature, align)?;
        self.upload(requests, &parts)
    }

    /// What has to be copied, and where to: input by input, each of all requests in the order of
    /// the batch.
    fn prepare(
        &self,
        requests: &mut [InferRequest],
        signature: &ModelSignature,
        align: usize,
    ) -> Result<Vec<TensorCopy>> {
        let (mut parts, mut end, mut strings) = (Vec::new(), 0usize, Vec::new());
        let inputs = requests.iter().map(|request| request.inputs.len()).max().unwrap_or(0);
        for input in 0..inputs {
            end = end.next_multiple_of(INPUT_ALIGN);
            for (at, request) in requests.iter_mut().enumerate() {
                let Some(tensor) = request.inputs.get_mut(input) else { continue };
                if stays_on_cpu(tensor, signature) {
                    if !tensor.data.location().is_cpu_accessible() {
                        strings.push(at);
                    }
                    to_cpu(tensor, align)?;
                    continue;
                }
                let here = tensor.data.location() == self.location();
                if tensor.data.is_empty() {
                    continue;
                }
                if here && is_aligned(tensor, align) {
                    self.hold_input(&mut tensor.data);
                    continue;
                }
                let (offset, len) = (end.next_multiple_of(align.max(1)), tensor.data.len());
                end = offset
                    .checked_add(len)
                    .ok_or_else(|| Error::invalid("inputs are too large"))?;
                parts.push(TensorCopy { request: at, input, offset, len });
            }
        }
        // Not before, since a request may have several.
        strings.into_iter().for_each(|at| check_strings(&mut requests[at]));
        Ok(parts)
    }

    /// Queues the copies of these parts; `None` if there are none.
    fn upload(
        &self,
        requests: &mut [InferRequest],
        parts: &[TensorCopy],
    ) -> Result<Option<Arc<InputBlock>>> {
        let Some(last) = parts.last() else { return Ok(None) };
        let tag = requests[last.request].context().signature.owner.tag(LedgerHolder::Input);
        let total = last.offset + last.len;
        let (streams, device) = (&self.streams, self.streams.device);
        let mut memory = device.alloc(total, &streams.copy_in, tag)?;
        let data = |part: &TensorCopy| &requests[part.request].inputs[part.input].data;
        let small = total / parts.len() <= STAGED_TENSOR;
        let staged = small && parts.iter().all(|part| data(part).readable().is_some());
        // The pool may be exhausted: then the driver stages the copies.
        let staging = if staged { device.alloc_pinned(total, tag).ok() } else { None };
        let kept = match &staging {
            Some(staging) => {
                collect(staging, parts, |part| data(part).readable().unwrap_or_default());
                Vec::new()
            }
            None => {
                parts.iter().for_each(|part| prepare_upload(data(part), device));
                parts.iter().map(|part| data(part).clone()).collect()
            }
        };
        let queued = self.queue_uploads(memory.address(), staging.as_ref(), parts, &kept);
        let ready = match queued {
            Ok(ready) => Arc::new(ready),
            Err(e) => {
                // Copies that were queued before the error still read the sources.
                let _ = streams.copy_in.settle();
                return Err(e);
            }
        };
        let source = CopySource { copied: Arc::clone(&ready), _memory: (staging, kept) };
        self.sources.lock().push_back(source);
        // The last work that uses the block is on the compute stream, which waits for the copies.
        memory.release_on(&streams.compute);
        let (awaited, streams) = (AtomicBool::new(false), Arc::clone(streams));
        let block = Arc::new(InputBlock { memory, ready, awaited, streams });
        for (at, request) in requests.iter_mut().enumerate() {
            let of_request = parts.iter().filter(|part| part.request == at);
            replace(request, of_request, &block, self.location());
        }
        Ok(Some(block))
    }

    /// Queues the copies to the block at `to`: of the staging block, or part by part. Returns the
    /// event after them. After an error some may be queued.
    fn queue_uploads(
        &self,
        to: u64,
        staging: Option<&PinnedMemory>,
        parts: &[TensorCopy],
        sources: &[TensorData],
    ) -> Result<CudaEvent> {
        let copy_in = &self.streams.copy_in;
        if let Some(staging) = staging {
            // SAFETY: both have this size. The caller keeps the pinned block until the copy is
            // complete, and frees the device block in the order of a stream that waits for the
            // copy.
            unsafe { copy_in.copy(to, staging.as_ptr() as u64, staging.len())? };
        }
        for (part, from) in parts.iter().zip(sources) {
            let from = from.as_ptr().addr() as u64;
            // SAFETY: the source has `len` bytes that the batch keeps until the copy is complete;
            // the device block has room for them at this offset and is freed in the order of a
            // stream that waits for the copy.
            unsafe { copy_in.copy(to + part.offset as u64, from, part.len)? };
        }
        self.streams.device.events().record(copy_in)
    }
}

/// Memory of a client is pinned when a device copies from it first.
fn prepare_upload(data: &TensorData, device: &'static GpuDevice) {
    if let Some(slice) = data.placed().filter(|slice| slice.memory().is_shared()) {
        slice.memory().owner().prepare_upload(device);
    }
}

/// Strings have lengths that the CPU reads; a shape tensor is read by the framework before it
/// queues work.
fn stays_on_cpu(tensor: &InputTensor, signature: &ModelSignature) -> bool {
    tensor.dtype == DType::String || signature.input_spec(tensor.index).shape_tensor
}

fn is_aligned(tensor: &InputTensor, align: usize) -> bool {
    let need = align.max(tensor.dtype.size().unwrap_or(1));
    tensor.data.as_ptr().addr().is_multiple_of(need)
}

fn to_cpu(tensor: &mut InputTensor, align: usize) -> Result<()> {
    if tensor.data.readable().is_some() && tensor.is_aligned(align) {
        return Ok(());
    }
    tensor.copy_aligned(align)
}

/// Copies all parts into the pinned block, and zeros between them.
fn collect<'a>(
    staging: &PinnedMemory,
    parts: &'a [TensorCopy],
    data: impl Fn(&'a TensorCopy) -> &'a [u8],
) {
    let mut end = 0;
    for part in parts {
        let from = data(part);
        // SAFETY: the parts are in ascending order inside the block, which nothing else uses.
        unsafe {
            let at = staging.as_ptr().add(end);
            at.write_bytes(0, part.offset - end);
            at.add(part.offset - end).copy_from_nonoverlapping(from.as_ptr(), from.len());
        }
        end = part.offset + part.len;
    }
}

/// Replaces the data of a request's inputs by their copies.
fn replace<'a>(
    request: &mut InferRequest,
    parts: impl Iterator<Item = &'a TensorCopy>,
    block: &Arc<InputBlock>,
    location: MemoryLocation,
) {
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return;
    }
    // A client may still shrink the memory that was copied.
    let shared = request.inputs.iter().filter_map(|input| input.data.placed());
    let shared = shared.map(|slice| Arc::clone(slice.memory())).collect();
    let owner = Arc::new(RequestInputs { block: Arc::clone(block), sources: shared });
    let ptr = std::ptr::without_provenance_mut(block.memory.address() as usize);
    // SAFETY: the block is device memory of this size, and lives as long as the owner.
    let memory = unsafe { PlacedMemory::new(ptr, block.memory.len(), location, false, owner) };
    for part in parts {
        if let Some(slice) = PlacedSlice::new(&memory, part.offset, part.len) {
            request.inputs[part.input].data = TensorData::Placed(slice);
        }
    }
}

fn fail_all(requests: &mut Vec<InferRequest>, error: &Error) {
    for request in requests.drain(..) {
        let _ = request.responder.finish(Err(error.clone()));
    }
}

/// Copies of the inputs of a batch, complete or not.
#[derive(Default)]
pub struct InputCopies {
    /// One, unless requests were copied one by one because memory was short.
    blocks: SmallVec<[Arc<InputBlock>; 1]>,
}

/// The device memory of a batch's inputs.
struct InputBlock {
    memory: DeviceMemory,
    /// The copies are complete.
    ready: Arc<CudaEvent>,
    /// The compute stream waits for them.
    awaited: AtomicBool,
    streams: Arc<GpuStreams>,
}

impl InputBlock {
    fn wait_on_compute(&self) -> Result<()> {
        self.ready.block(&self.streams.compute)?;
        self.awaited.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for InputBlock {
    fn drop(&mut self) {
        // The memory is freed in the order of the compute stream: not while it is written. An error
        // means that the device is lost.
        if !*self.awaited.get_mut() {
            let _ = self.wait_on_compute();
        }
    }
}

/// The inputs of one request, as owner of its tensors.
struct RequestInputs {
    block: Arc<InputBlock>,
    /// Placed memory that was copied.
    sources: Vec<Arc<PlacedMemory>>,
}

impl MemoryOwner for RequestInputs {
    fn fault(&self) -> Option<Error> {
        self.sources.iter().find_map(|memory| memory.fault())
    }

    fn ready_event(&self) -> *const u8 {
        Arc::as_ptr(&self.block.ready).cast()
    }

    fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        let InputBlock { memory, ready, streams, .. } = &*self.block;
        ready.block(&streams.copy_out)?;
        // SAFETY: inside the block, which lives; the copy is complete before this returns.
        unsafe {
            let from = memory.address() + offset as u64;
            streams.copy_out.copy(to.as_mut_ptr().addr() as u64, from, to.len())?;
        }
        streams.copy_out.settle()
    }
}

#[cfg(test)]
#[path = "upload_tests.rs"]
mod tests;
