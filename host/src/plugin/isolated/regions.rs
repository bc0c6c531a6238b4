//! Regions of client shared memory that a child has mapped, too. Each is sent once over a work connection, with its file, ahead of
//! the first batch that uses it; after that, messages name it by number. The child unmaps it when the host has dropped it.

use super::messages::{ExecuteBatch, Region};
use super::wire::{MAX_FILES, Sender};
use crate::error::Result;
use crate::request::InferRequest;
use crate::request::mapped_file::{MappedFile, RegionObserver};
use crate::request::memory::{PlacedMemory, PlacedSlice};
use crate::sync::Mutex;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};

/// The regions of one work connection.
#[derive(Default)]
pub struct SentRegions(Mutex<State>);

#[derive(Default)]
struct State {
    /// Numbers of the regions that the child has.
    sent: HashSet<u64>,
    /// Numbers of the regions that the next message tells the child to unmap.
    dropped: Vec<u64>,
}

impl SentRegions {
    /// Sends the files of the regions that `requests` use and the child does not have. `observer` calls [`SentRegions::dropped`].
    ///
    /// # Errors
    /// As of [`Sender::send`].
    pub fn send(
        &self,
        requests: &[InferRequest],
        sender: &Sender,
        observer: &Weak<impl RegionObserver + 'static>,
    ) -> Result<()> {
        let used = requests.iter().flat_map(slices).filter_map(|slice| file(slice.memory()));
        let mut state = None;
        let mut new = SmallVec::<[(MappedFile<'_>, usize); MAX_FILES]>::new();
        for (file, len) in used {
            let state = state.get_or_insert_with(|| self.0.lock());
            if state.sent.insert(file.number) {
                let observer = Weak::clone(observer);
                file.observers.add(observer);
                new.push((file, len));
            }
        }
        let Some(mut state) = state else { return Ok(()) };
        let mut dropped = std::mem::take(&mut state.dropped);
        drop(state);
        for part in new.chunks(MAX_FILES) {
            let regions = part.iter().map(|(file, len)| Region {
                number: file.number,
                name: file.name.to_owned(),
                key: file.key.to_owned(),
                offset: file.offset,
                bytes: *len as u64,
            });
            let message = ExecuteBatch {
                regions: regions.collect(),
                dropped_regions: std::mem::take(&mut dropped),
                ..ExecuteBatch::default()
            };
            let files: SmallVec<[BorrowedFd<'_>; MAX_FILES]> =
                part.iter().map(|(file, _)| file.file).collect();
            sender.send_with(&message, &files)?;
        }
        self.0.lock().dropped.append(&mut dropped);
        Ok(())
    }

    /// The region was dropped: no request uses it. The child gets to know it now if that does not block, else with the next region.
    pub fn dropped(&self, number: u64, sender: &Sender) {
        let mut state = self.0.lock();
        if !state.sent.remove(&number) {
            return;
        }
        state.dropped.push(number);
        let dropped_regions = std::mem::take(&mut state.dropped);
        let message = ExecuteBatch { dropped_regions, ..ExecuteBatch::default() };
        if !sender.try_send(&message) {
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

/// The file of the memory, and the memory's length.
fn file(memory: &Arc<PlacedMemory>) -> Option<(MappedFile<'_>, usize)> {
    Some((memory.owner().file()?, memory.len()))
}

/// The number of the region that `slice` is in; `None` if the memory is not a part of a file.
pub fn number(slice: &PlacedSlice) -> Option<u64> {
    slice.memory().owner().file().map(|file| file.number)
}
