//! Outputs in device memory, and responses that are sent when the device has written them.

use super::GpuInstance;
use crate::device::{DeviceMemory, Event, PinnedMemory};
use crate::error::{Error, Result};
use crate::ledger::MemoryTag;
use crate::request::buffer::{self, AlignedBuf};
use crate::request::{InferResponse, Responder};
use bytes::Bytes;
use std::sync::Arc;
use trtserver_plugin_api::abi::types::{Buf, Memory};

/// An output in device memory, until it is copied to the CPU.
pub struct DeviceOutput {
    parts: Vec<(u64, usize)>,
    len: usize,
    memory: Owner,
    /// After the memory is zeroed, for backends that do not use the compute stream.
    ready: Option<Box<Event>>,
    device_id: i32,
    /// Of the copy in CPU memory.
    tag: MemoryTag,
}

enum Owner {
    Allocated(DeviceMemory),
    /// Released when the copy is complete.
    Donated(Donated),
}

type Donated = Box<dyn Send + Sync>;

impl DeviceOutput {
    pub fn len(&self) -> usize {
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
            memory: Memory::gpu(self.device_id),
            ready: ready.cast_mut().cast(),
            memory_handle: 0,
        }
    }

    /// Memory of the backend, whose parts are not all readable by the CPU.
    pub fn donated(parts: &[Buf], donation: impl Send + Sync + 'static, tag: MemoryTag) -> Self {
        let parts: Vec<_> =
            parts.iter().map(|part| (part.ptr.addr() as u64, part.bytes as usize)).collect();
        let len = parts.iter().map(|(_, len)| len).sum();
        let memory = Owner::Donated(Box::new(donation));
        Self { parts, len, memory, ready: None, device_id: 0, tag }
    }
}

/// Where the copy of an output goes.
enum Target {
    /// Queued already.
    Pinned(PinnedMemory, Option<Donated>, MemoryTag),
    /// The pinned pool is exhausted. A copy to pageable memory blocks its thread, so the completion thread makes it.
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
            let memory = self.streams.device.alloc(len, &self.streams.compute)?;
            // SAFETY: the block has this size, and is freed in the order of this stream or of one that waits for it.
            unsafe { self.streams.compute.zero(memory.address(), len)? };
            let (ready, parts) = (self.ready_event()?, vec![(memory.address(), len)]);
            let device_id = self.streams.device.ordinal;
            let memory = Owner::Allocated(memory);
            Ok(DeviceOutput { parts, len, memory, ready, device_id, tag })
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
            // SAFETY: the parts are inputs of requests, freed in the order of the compute stream or kept by their owner, and the
            // block has their size. The compute stream waits for inputs.
            unsafe { compute.copy(to, part.ptr.addr() as u64, part.bytes as usize)? };
            to += part.bytes;
        }
        Ok(DeviceOutput { ready: self.ready_event()?, ..block })
    }

    /// Copies `outputs` to the CPU once `after` is reached (see [`GpuInstance::wait_for_outputs`]), and passes them to `then` on
    /// the completion thread: in the order of these calls. With an error if the device is lost.
    pub fn download(
        self: &Arc<Self>,
        after: Option<&Event>,
        outputs: Vec<DeviceOutput>,
        then: impl FnOnce(Result<Vec<Bytes>>) + Send + 'static,
    ) {
        let queued = self.queue_copies(after, outputs);
        let gpu = Arc::clone(self);
        let finish = move |reached: Result<()>| {
            let copied = queued.and_then(|targets| {
                reached?;
                targets.into_iter().map(|target| gpu.bytes_of(target)).collect()
            });
            then(copied.map_err(|e| gpu.fault(e)));
        };
        self.streams.when_done(&self.streams.copy_out, Box::new(finish));
    }

    /// After the work of the compute stream, for backends that do not use it; on the heap, since backends have its address.
    fn ready_event(&self) -> Result<Option<Box<Event>>> {
        let record = || self.streams.device.events().record(&self.streams.compute).map(Box::new);
        self.own_stream.then(record).transpose()
    }

    fn queue_copies(
        &self,
        after: Option<&Event>,
        outputs: Vec<DeviceOutput>,
    ) -> Result<Vec<Target>> {
        let copy_out = &self.streams.copy_out;
        self.wait_for_outputs(after, copy_out)?;
        let mut targets = Vec::with_capacity(outputs.len());
        for mut output in outputs {
            if let Owner::Allocated(memory) = &mut output.memory {
                memory.release_on(copy_out);
            }
            let Ok(pinned) = self.streams.device.alloc_pinned(output.len) else {
                targets.push(Target::Pageable(output));
                continue;
            };
            let mut to = pinned.as_ptr() as u64;
            for &(from, len) in &output.parts {
                // SAFETY: both are valid; the pinned block is kept until the copy is complete, the device block is freed in the
                // order of this stream, or released by `Donated` when the callback is done.
                unsafe { copy_out.copy(to, from, len)? };
                to += len as u64;
            }
            let donated = match output.memory {
                // Freed behind the copy.
                Owner::Allocated(_) => None,
                Owner::Donated(donated) => Some(donated),
            };
            targets.push(Target::Pinned(pinned, donated, output.tag));
        }
        Ok(targets)
    }

    fn bytes_of(&self, target: Target) -> Result<Bytes> {
        match target {
            Target::Pinned(pinned, donated, tag) => {
                drop(donated);
                let pinned = PinnedBytes(pinned);
                if !buffer::uses_arena() {
                    return Ok(Bytes::from_owner(pinned));
                }
                // Outputs of a child process must be in its arena.
                let block = AlignedBuf::try_copy(None, &[pinned.as_ref()], tag);
                Ok(block.map_err(|e| e.refuse("an output in GPU memory"))?.into_bytes())
            }
            Target::Pageable(output) => {
                let block = AlignedBuf::unwritten(output.len, output.tag);
                let mut block = block.map_err(|e| e.refuse("an output in GPU memory"))?;
                let mut to = block.as_mut_ptr() as u64;
                for &(from, len) in &output.parts {
                    // SAFETY: both are valid, and the copy is complete before the block is used.
                    unsafe { self.streams.copy_out.copy(to, from, len)? };
                    to += len as u64;
                }
                self.streams.copy_out.synchronize()?;
                Ok(block.into_bytes())
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
