//! The placed memory that a request reads and writes. It is asked for faults before a response is
//! sent.

use super::memory::PlacedSlice;
use super::tensor::{InputTensor, RequestedOutput};
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::error::Error;

/// The placed memory of one request, which is asked for faults before a response is sent.
pub struct UsedMemory {
    /// Placed memory of inputs and output destinations.
    slices: SmallVec<[PlacedSlice; 4]>,
    /// The CPU cannot access some of it.
    on_device: bool,
}

impl UsedMemory {
    /// `None` for an ordinary request, whose tensors are in memory of the host.
    pub fn from_tensors(inputs: &[InputTensor], outputs: &[RequestedOutput]) -> Option<Arc<Self>> {
        let inputs = inputs.iter().filter_map(|input| input.data.placed());
        let outputs = outputs.iter().filter_map(|output| output.destination.as_deref());
        let mut slices = inputs.chain(outputs.map(|destination| destination.slice())).peekable();
        slices.peek()?;
        let slices: SmallVec<[PlacedSlice; 4]> = slices.cloned().collect();
        let on_device = slices.iter().any(|slice| !slice.location().is_cpu_accessible());
        Some(Arc::new(Self { slices, on_device }))
    }

    /// The same, with the memory of `inputs` that the CPU cannot access.
    pub fn with_device_inputs(self: &Arc<Self>, inputs: &[InputTensor]) -> Arc<Self> {
        let placed = inputs.iter().filter_map(|input| input.data.placed());
        let mut on_device = placed.filter(|slice| !slice.location().is_cpu_accessible()).peekable();
        if on_device.peek().is_none() {
            return Arc::clone(self);
        }
        let slices = self.slices.iter().chain(on_device).cloned().collect();
        Arc::new(Self { slices, on_device: true })
    }

    /// Reading or writing some of it waits for a device.
    pub fn is_on_device(&self) -> bool {
        self.on_device
    }

    /// No other tensor of the request overlaps this part of a destination, so a backend may write
    /// it while it reads the inputs.
    pub fn is_exclusive(&self, part: &PlacedSlice) -> bool {
        self.slices.iter().filter(|slice| slice.overlaps(part)).count() <= 1
    }

    /// The first fault. See [`super::memory::MemoryOwner::fault`].
    pub fn fault(&self) -> Option<Error> {
        self.slices.iter().find_map(|slice| slice.memory().fault())
    }
}
