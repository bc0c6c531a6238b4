//! Request context: what is known when a request is built. Immutable, so backends and schedulers
//! read it without a lock.

use super::buffer::ALIGN;
use super::memory::{MemoryLocation, OutputMemory, PlacedSlice};
use super::signature::ModelSignature;
use super::tensor::RequestedOutput;
use super::tensor_data::TensorData;
use super::unread::StreamLimit;
use super::used_memory::UsedMemory;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::VersionStats;

pub struct RequestContext {
    pub signature: Arc<ModelSignature>,
    /// `None` for requests that the host makes itself (null requests, warm-up, the child's side of
    /// an isolated model): they are not counted.
    pub stats: Option<Arc<VersionStats>>,
    /// When the first byte of the request was read.
    pub received_ns: u64,
    /// Batch size: the first dimension of every tensor of a batching model, else 1.
    pub batch: u32,
    /// In the order in which the client named them. v2 fills in all outputs when none is named; v1
    /// may request none.
    pub outputs: SmallVec<[RequestedOutput; 2]>,
    /// The stream that the request came from, if it is one of v2.
    pub stream: Option<Arc<dyn StreamLimit>>,
    /// The model is decoupled: a backend that sends a response waits while the stream's limit is
    /// reached.
    pub waits: bool,
    /// How errors are worded for the client of the request.
    pub wording: ErrorWording,
    /// Placed memory of inputs and output destinations.
    pub used_memory: Option<Arc<UsedMemory>>,
}

/// How errors of the schedulers are worded: each protocol generation has texts of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorWording {
    /// Without the request id, and for clients whose correlation ids are numbers.
    V1,
    /// With the request id before most texts (docs/protocol/v2.md §4.7).
    #[default]
    V2,
}

impl RequestContext {
    /// The request came from a client and is part of the statistics.
    pub fn is_counted(&self) -> bool {
        self.stats.is_some()
    }

    /// Sending a response may block.
    pub fn may_wait(&self) -> bool {
        self.waits && self.stream.is_some()
    }

    /// Reading inputs or writing outputs may wait for a device.
    pub fn waits_for_device(&self) -> bool {
        self.used_memory.as_ref().is_some_and(|used| used.is_on_device())
    }

    /// Why no response of the request can be trusted: its placed memory has a fault.
    pub fn fault(&self) -> Option<Error> {
        self.used_memory.as_ref()?.fault()
    }

    /// Where the client wants the requested output at this position.
    pub fn destination(&self, position: usize) -> Option<&Arc<OutputMemory>> {
        // Classes are computed from the tensor and sent.
        self.outputs.get(position).filter(|o| o.classes == 0)?.destination.as_ref()
    }

    /// The data of the requested output at this position for the response. See
    /// [`TensorData::deliver`].
    ///
    /// # Errors
    /// The errors of [`TensorData::deliver`].
    pub fn deliver(&self, position: usize, data: TensorData, name: &str) -> Result<TensorData> {
        let destination = self.destination(position);
        let on_device = destination.is_none() && !data.location().is_cpu_accessible();
        if on_device && self.is_wanted_on_device(position) {
            return Ok(data);
        }
        data.deliver(destination, name)
    }

    /// The requested output at this position is wanted in GPU memory: a step of an ensemble reads
    /// it there, or its destination is there.
    pub fn is_wanted_on_device(&self, position: usize) -> bool {
        match self.destination(position) {
            Some(destination) => !destination.slice().location().is_cpu_accessible(),
            None => self.outputs.get(position).is_some_and(RequestedOutput::stays_on_device),
        }
    }

    /// The memory in which the client wants `len` bytes of the requested output at this position,
    /// if a backend may write it directly: it is suitable and has no bytes in common with another
    /// tensor of the request. On `gpu` for a backend that writes there, else memory that the CPU
    /// can access.
    pub fn direct_memory(
        &self,
        position: usize,
        len: usize,
        gpu: Option<MemoryLocation>,
    ) -> Option<PlacedSlice> {
        let slice = self.destination(position)?.direct(len, ALIGN, gpu)?;
        self.used_memory.as_ref().is_some_and(|used| used.is_exclusive(&slice)).then_some(slice)
    }

    /// Position of the signature's output number `index` among the requested outputs.
    pub fn position(&self, index: usize) -> Option<usize> {
        self.outputs.iter().position(|output| output.index() == index)
    }
}
