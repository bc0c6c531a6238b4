//! Outputs in device memory, copied to the CPU or kept there, and responses that are sent when the
//! device has written them.

use super::GpuInstance;
use super::resident::kept_output;
use bytes::Bytes;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::MemoryTag;
use trtserver_device::{CudaEvent, DeviceMemory, PinnedMemory};
use trtserver_plugin_api::abi::types::{Buf, Memory, memory_type};
use trtserver_request::buffer;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::memory::PlacedSlice;
use trtserver_request::{InferResponse, Responder, TensorData};

/// An output in device memory, until it is written, and copied to the CPU unless it stays.
pub struct DeviceOutput {
    parts: Vec<(u64, usize)>,
    len: usize,
    memory: OutputOwner,
    /// After the memory is zeroed, for backends that do not use the compute stream.
    ready: Option<Box<CudaEvent>>,
    /// Ordinal of the GPU; `None` for several parts, or memory of another type.
    device_id: Option<i32>,
    /// Ledger tag of the copy in CPU memory.
    tag: MemoryTag,
    /// Not copied to the CPU.
    stays: bool,
}

enum OutputOwner {
    Allocated(DeviceMemory),
    /// Released when the copy is complete.
    Donated(DonatedMemory),
    /// Memory of a client, which wants the output there.
    Destination(PlacedSlice),
}

type DonatedMemory = Box<dyn Send + Sync>;

impl DeviceOutput {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn address(&self) -> u64 {
        self.parts.first().map_or(0, |(address, _)| *address)
    }

    /// The memory as the backend receives it.
    pub fn buf(&self) -> Buf {
        let ready = self.ready.as_deref().map_or(std::ptr::null(), std::ptr::from_ref);
        Buf {
            ptr: std::ptr::without_provenance_mut(self.address() as usize),
            bytes: self.len as u64,
            memory: Memory::gpu(self.device_id.unwrap_or_default()),
            ready: ready.cast_mut().cast(),
            memory_handle: 0,
        }
    }

    /// Memory of the backend, whose parts are not all readable by the CPU.
    pub fn donated(parts: &[Buf], donation: impl Send + Sync + 'static, tag: MemoryTag) -> Self {
        let device_id = match parts {
            [one] => Some(one).filter(|part| part.memory.memory_type == memory_type::GPU),
            _ => None,
        };
        let parts: Vec<_> =
            parts.iter().map(|part| (part.ptr.addr() as u64, part.bytes as usize)).collect();
        let len = parts.iter().map(|(_, len)| len).sum();
        let device_id = device_id.map(|part| part.memory.device_id);
        let memory = OutputOwner::Donated(Box::new(donation));
        Self { parts, len, memory, ready: None, device_id, tag, stays: false }
    }

    /// GPU memory of the client for the backend to write.
    pub fn in_destination(slice: PlacedSlice, tag: MemoryTag) -> Self {
        let (len, device_id) = (slice.len(), Some(slice.location().device_id));
        let parts = vec![(slice.as_ptr().addr() as u64, len)];
        let memory = OutputOwner::Destination(slice);
        Self { parts, len, memory, ready: None, device_id, tag, stays: true }
    }

    /// Leaves the output in GPU memory, if it is one piece there.
    pub fn stay(&mut self) {
        self.stays = self.device_id.is_some();
    }
}

/// Where the copy of an output goes.
enum CopyTarget {
    /// It stays where it is.
    Device(DeviceOutput),
    /// Queued already.
    Pinned(PinnedMemory, Option<DonatedMemory>, MemoryTag),
    /// The pinned pool is exhausted. A copy to pageable memory blocks its thread, so the completion
    /// thread makes it.
    Pageable(DeviceOutput),
}

impl GpuInstance {
    /// Device memory for an output, zeroed, for work on the compute stream.
    ///
    /// # Errors
    /// The device has too little free memory, or is lost.
    pub fn alloc_output(&self, bytes: u64, tag: MemoryTag) -> Result<DeviceOutput> {
        let alloc = || {
            let len =
                usize::try_from(bytes).map_err(|_| Error::invalid("an output is too large"))?;
            let memory = self.streams.device.alloc(len, &self.streams.compute, tag)?;
            // SAFETY: the block has this size, and is freed in the order of this stream or of one
            // that waits for it.
            unsafe { self.streams.compute.zero(memory.address(), len)? };
            let (ready, parts) = (self.ready_event()?, vec![(memory.address(), len)]);
            let device_id = Some(self.streams.device.ordinal);
            let memory = OutputOwner::Allocated(memory);
            Ok(DeviceOutput { parts, len, memory, ready, device_id, tag, stays: false })
        };
        alloc().map_err(|e| self.fault(e))
    }

    /// Finishes a request after its responses that wait for the device.
    pub fn finish_later(
        self: &Arc<Self>,
        responder: Arc<Responder>,
        result: Result<Option<InferResponse>>,
    ) {
        let finish = move |_| drop(responder.finish(result));
        self.streams.when_done(&self.streams.copy_out, Box::new(finish));
    }

    /// One block on the device with a copy of all `parts`, which are there, too.
    ///
    /// # Errors
    /// The device has too little free memory, or is lost.
    pub fn gather(&self, parts: &[&Buf], tag: MemoryTag) -> Result<DeviceOutput> {
        let bytes = parts.iter().map(|part| part.bytes).sum();
        let block = self.alloc_output(bytes, tag)?;
        let compute = &self.streams.compute;
        let mut to = block.address();
        for part in parts {
            // SAFETY: the parts are inputs of requests, freed in the order of the compute stream or
            // kept by their owner, and the block has their size. The compute stream waits for
            // inputs.
            unsafe { compute.copy(to, part.ptr.addr() as u64, part.bytes as usize)? };
            to += part.bytes;
        }
        Ok(DeviceOutput { ready: self.ready_event()?, ..block })
    }

    /// Copies `outputs` to the CPU once `after` is reached (see [`GpuInstance::wait_for_outputs`]),
    /// except outputs that stay on the device, and passes them to `then` on the completion thread:
    /// in the order of these calls. With an error if the device is lost.
    pub fn download(
        self: &Arc<Self>,
        after: Option<&CudaEvent>,
        outputs: Vec<DeviceOutput>,
        then: impl FnOnce(Result<Vec<TensorData>>) + Send + 'static,
    ) {
        let mut targets = Vec::with_capacity(outputs.len());
        let queued = self.queue_copies(after, outputs, &mut targets);
        let gpu = Arc::clone(self);
        let finish = move |reached: Result<()>| {
            // The inputs were read before the outputs were written. Who gets a response may expect
            // that nothing holds the memory of its inputs.
            gpu.prune_sources();
            // After an error, too, the copies that were queued before it have ended by now.
            let copied = queued
                .and(reached)
                .and_then(|()| targets.into_iter().map(|target| gpu.read_target(target)).collect());
            then(copied.map_err(|e| gpu.fault(e)));
        };
        self.streams.when_done(&self.streams.copy_out, Box::new(finish));
    }

    /// After the work of the compute stream, for backends that do not use it; on the heap, since
    /// backends have its address.
    fn ready_event(&self) -> Result<Option<Box<CudaEvent>>> {
        let record = || self.streams.device.events().record(&self.streams.compute).map(Box::new);
        self.own_stream.then(record).transpose()
    }

    /// Queues the copies, and adds where each output goes to `targets`, which are kept until the
    /// copies are complete, after an error as well.
    fn queue_copies(
        &self,
        after: Option<&CudaEvent>,
        outputs: Vec<DeviceOutput>,
        targets: &mut Vec<CopyTarget>,
    ) -> Result<()> {
        let copy_out = &self.streams.copy_out;
        let mut result = self.wait_for_outputs(after, copy_out);
        for mut output in outputs {
            if result.is_err() || output.stays {
                targets.push(CopyTarget::Device(output));
                continue;
            }
            if let OutputOwner::Allocated(memory) = &mut output.memory {
                memory.release_on(copy_out);
            }
            let Ok(pinned) = self.streams.device.alloc_pinned(output.len, output.tag) else {
                targets.push(CopyTarget::Pageable(output));
                continue;
            };
            let mut to = pinned.as_ptr() as u64;
            for &(from, len) in &output.parts {
                // SAFETY: both are valid; the pinned block is kept until the copy is complete, the
                // device block is freed in the order of this stream, or released by `DonatedMemory`
                // when the callback is done.
                result = result.and_then(|()| unsafe { copy_out.copy(to, from, len) });
                to += len as u64;
            }
            let donated = match output.memory {
                // Freed behind the copy.
                OutputOwner::Allocated(_) | OutputOwner::Destination(_) => None,
                OutputOwner::Donated(donated) => Some(donated),
            };
            targets.push(CopyTarget::Pinned(pinned, donated, output.tag));
        }
        result
    }

    fn read_target(&self, target: CopyTarget) -> Result<TensorData> {
        match target {
            CopyTarget::Device(DeviceOutput { parts, device_id, memory, .. }) => {
                let device_id = device_id.unwrap_or_default();
                Ok(match (memory, parts.first()) {
                    (OutputOwner::Destination(slice), _) => slice.into(),
                    (owner, Some(part)) => {
                        kept_output(owner, *part, device_id, self.streams.device)
                    }
                    (_, None) => TensorData::EMPTY,
                })
            }
            CopyTarget::Pinned(pinned, donated, tag) => {
                drop(donated);
                let pinned = PinnedBytes(pinned);
                if !buffer::uses_arena() {
                    return Ok(Bytes::from_owner(pinned).into());
                }
                // Outputs of a child process must be in its arena.
                let block = AlignedBuf::try_copy(None, &[pinned.as_ref()], tag);
                Ok(block.map_err(|e| e.refuse("an output in GPU memory"))?.into_bytes().into())
            }
            CopyTarget::Pageable(output) => {
                let block = AlignedBuf::unwritten(output.len, output.tag);
                let mut block = block.map_err(|e| e.refuse("an output in GPU memory"))?;
                let (copy_out, mut to) = (&self.streams.copy_out, block.as_mut_ptr() as u64);
                let queued = output.parts.iter().try_for_each(|&(from, len)| {
                    // SAFETY: both are valid until the copy is complete, which is waited for below,
                    // after an error as well.
                    let copied = unsafe { copy_out.copy(to, from, len) };
                    to += len as u64;
                    copied
                });
                let waited = copy_out.settle();
                queued.and(waited)?;
                Ok(block.into_bytes().into())
            }
        }
    }
}

/// Pinned memory that is sent from where it is.
struct PinnedBytes(PinnedMemory);

impl AsRef<[u8]> for PinnedBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the copy has written all bytes, and nothing writes them any more.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.0.len()) }
    }
}

#[cfg(test)]
#[path = "download_tests.rs"]
mod tests;
