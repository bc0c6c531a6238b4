//! Regions of client shared memory that a child has opened, too. Each is sent once over a work
//! connection, with its file or its CUDA IPC handle, ahead of the first batch that uses it; after
//! that, messages name it by number. The child closes it when the host has dropped it and its own
//! requests have.

use super::messages::{ExecuteBatch, RegionMessage};
use super::wire::MAX_FILES;
use super::work_channel::WorkSender;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Weak;
use trtserver_base::error::Result;
use trtserver_request::InferRequest;
use trtserver_request::memory::{MemoryLocation, PlacedSlice};
use trtserver_request::shared_region::{RegionObserver, RegionSource, SharedRegion};

/// The regions of one work connection.
#[derive(Default)]
pub struct SentRegions(Mutex<SentRegionState>);

#[derive(Default)]
struct SentRegionState {
    /// Numbers of the regions that the child has.
    sent: HashSet<u64>,
    /// Numbers of the regions that the next message tells the child to close.
    dropped: Vec<u64>,
}

impl SentRegions {
    /// Sends the regions that `requests` use and the child, whose instance is on `gpu`, does not
    /// have. `observer` calls [`SentRegions::dropped`].
    ///
    /// # Errors
    /// The errors of [`WorkSender::send`].
    pub fn send(
        &self,
        requests: &[InferRequest],
        gpu: Option<i32>,
        sender: &WorkSender,
        observer: &Weak<impl RegionObserver + 'static>,
    ) -> Result<()> {
        let used = requests.iter().flat_map(slices);
        let used = used.filter_map(|slice| Some((region(slice, gpu)?, slice.memory().len())));
        let mut state = None;
        let mut new = SmallVec::<[(SharedRegion<'_>, usize); MAX_FILES]>::new();
        for (region, len) in used {
            let state = state.get_or_insert_with(|| self.0.lock());
            if state.sent.insert(region.number) {
                region.observers.add(Weak::clone(observer) as _);
                new.push((region, len));
            }
        }
        let Some(mut state) = state else { return Ok(()) };
        let mut dropped = std::mem::take(&mut state.dropped);
        drop(state);
        for part in new.chunks(MAX_FILES) {
            let (mut regions, mut files) = (Vec::new(), SmallVec::<[_; MAX_FILES]>::new());
            for (region, len) in part {
                let (name, bytes) = (region.name.to_owned(), *len as u64);
                let message = RegionMessage {
                    number: region.number,
                    name,
                    bytes,
                    ..RegionMessage::default()
                };
                regions.push(match region.source {
                    RegionSource::File { file, offset, key } => {
                        files.push(file);
                        RegionMessage { key: key.to_owned(), offset, ..message }
                    }
                    RegionSource::Cuda { handle } => {
                        RegionMessage { cuda_handle: handle.to_vec(), ..message }
                    }
                });
            }
            let dropped_regions = std::mem::take(&mut dropped);
            let message = ExecuteBatch { regions, dropped_regions, ..ExecuteBatch::default() };
            sender.send_with(&message, &files)?;
        }
        self.0.lock().dropped.append(&mut dropped);
        Ok(())
    }

    /// The region was dropped: no request uses it. The child gets to know it now if that does not
    /// block, else with the next region.
    pub fn dropped(&self, number: u64, sender: &WorkSender) {
        let mut state = self.0.lock();
        if !state.sent.remove(&number) {
            return;
        }
        state.dropped.push(number);
        let dropped_regions = std::mem::take(&mut state.dropped);
        let message = ExecuteBatch { dropped_regions, ..ExecuteBatch::default() };
        if !matches!(sender.send_now(&message), Ok(Some(_))) {
            state.dropped = message.dropped_regions;
        }
    }
}

/// The slices of placed memory that a request uses.
fn slices(request: &InferRequest) -> impl Iterator<Item = &PlacedSlice> {
    let inputs = request.inputs.iter().filter_map(|input| input.data.placed());
    let outputs = request.context().outputs.iter().filter_map(|o| o.destination.as_deref());
    inputs.chain(outputs.map(|destination| destination.slice()))
}

/// The region that `slice` is in, if the child opens it: a part of a file, or memory of its GPU
/// `gpu`.
fn region(slice: &PlacedSlice, gpu: Option<i32>) -> Option<SharedRegion<'_>> {
    let location = slice.location();
    let opens = location.is_cpu_accessible() || gpu.map(MemoryLocation::gpu) == Some(location);
    slice.memory().owner().shared_region().filter(|_| opens)
}

/// The number of the region that `slice` is in; `None` if the child does not open it.
pub fn region_number(slice: &PlacedSlice, gpu: Option<i32>) -> Option<u64> {
    region(slice, gpu).map(|region| region.number)
}
