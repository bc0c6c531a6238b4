//! The GPU of an instance, for the batches that it executes: its streams, when memory is ready, and
//! when it is reused.
//!
//! Order of one batch, as events on the instance's three streams. `upload` copies the inputs on
//! *copy in* and makes *compute* wait for them. The backend queues its work on *compute* and
//! returns. `download` makes *copy out* wait for it, copies the outputs, and the completion thread
//! sends the responses. Nothing waits on the instance's thread, so with `max_in_flight` 2 the
//! inputs of the next batch are copied while this one computes. Where a backend waits for its work,
//! the inputs of the next batch are copied before (`copy_inputs`), and *compute* waits for them when
//! that batch begins (`use_copies`). Memory is freed in the order of the stream that uses it last.

mod download;
pub mod pinned_inputs;
mod resident;
mod upload;

pub use download::DeviceOutput;
pub use upload::InputCopies;

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_device::{CudaEvent, CudaStream, GpuStreams, PinnedMemory};
use trtserver_request::TensorData;
use trtserver_request::memory::MemoryLocation;

/// The streams of one GPU instance, and the order of its copies, computation and memory reuse.
pub struct GpuInstance {
    streams: Arc<GpuStreams>,
    /// The backend takes inputs in GPU memory.
    takes_inputs: bool,
    /// The backend uses streams of its own: the compute stream says nothing about its work.
    own_stream: bool,
    sources: Mutex<VecDeque<CopySource>>,
}

/// Host memory that a copy to the device reads, kept until the copy is complete.
struct CopySource {
    copied: Arc<CudaEvent>,
    _memory: (Option<PinnedMemory>, Vec<TensorData>),
}

impl GpuInstance {
    pub fn new(streams: Arc<GpuStreams>, takes_inputs: bool, own_stream: bool) -> Arc<Self> {
        Arc::new(Self { streams, takes_inputs, own_stream, sources: Mutex::default() })
    }

    pub fn location(&self) -> MemoryLocation {
        MemoryLocation::gpu(self.streams.device.ordinal)
    }

    /// Whether the backend takes inputs in GPU memory.
    pub fn takes_inputs(&self) -> bool {
        self.takes_inputs
    }

    /// Makes later work of the compute stream, such as freeing memory, wait for `event`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn continue_after(&self, event: &CudaEvent) -> Result<()> {
        event.block(&self.streams.compute)
    }

    /// An error of a driver call. If the device is lost, so is the instance.
    fn fault(&self, error: Error) -> Error {
        let lost = self.streams.device.lost().is_some();
        Error { model_broken: lost || error.model_broken, ..error }
    }

    /// Frees the sources of completed copies.
    fn prune_sources(&self) {
        // Dropped without the lock.
        while let Some(source) = self.take_copied_source() {
            drop(source);
        }
    }

    /// The oldest source, if its copy is complete.
    fn take_copied_source(&self) -> Option<CopySource> {
        let mut sources = self.sources.lock();
        let copied = |source: &CopySource| !matches!(source.copied.is_reached(), Ok(false));
        sources.front().is_some_and(copied).then(|| sources.pop_front()).flatten()
    }

    /// Makes `stream` wait until outputs are written: for `after`, or for the work on the compute
    /// stream.
    fn wait_for_outputs(&self, after: Option<&CudaEvent>, stream: &CudaStream) -> Result<()> {
        match after {
            Some(event) => event.block(stream),
            None if self.own_stream => Ok(()),
            None => self.streams.device.events().record(&self.streams.compute)?.block(stream),
        }
    }
}

impl Drop for GpuInstance {
    fn drop(&mut self) {
        // Copies that read the sources; the device may be lost.
        if !self.sources.get_mut().is_empty() {
            let _ = self.streams.copy_in.synchronize();
        }
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
