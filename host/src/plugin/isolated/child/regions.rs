//! Client shared memory that messages of a work connection refer to: its files come from the host, and are mapped here again.

use crate::error::{Error, Result};
use crate::plugin::isolated::messages::{ExecuteBatch, Region};
use crate::plugin::isolated::wire::Receiver;
use crate::request::memory::{PlacedMemory, PlacedSlice};
use crate::shared_memory::{self, OpenError};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The regions by number; an error for one that cannot be mapped.
#[derive(Default)]
pub struct Regions(HashMap<u64, Result<Arc<PlacedMemory>>>);

impl Regions {
    /// Maps the regions that came with a message, and unmaps the regions that it lists as dropped. A request that still uses one
    /// keeps it mapped.
    pub fn update(&mut self, message: &ExecuteBatch, receiver: &mut Receiver) {
        for region in &message.regions {
            self.0.insert(region.number, map(region, receiver.file()));
        }
        for number in &message.dropped_regions {
            self.0.remove(number);
        }
    }

    /// # Errors
    /// The region cannot be mapped. An unknown region or a range that is not in it is a fault of the host.
    pub fn slice(&self, number: u64, offset: u64, bytes: u64) -> Result<PlacedSlice> {
        let Some(region) = self.0.get(&number) else {
            return Err(Error::internal(format!(
                "shared memory region number {number} was not sent; this is a fault of the server"
            )));
        };
        let region = region.as_ref().map_err(Error::clone)?;
        let range = usize::try_from(offset).ok().zip(usize::try_from(bytes).ok());
        let slice = range.and_then(|(offset, bytes)| PlacedSlice::new(region, offset, bytes));
        slice.ok_or_else(|| {
            Error::internal(format!(
                "{bytes} bytes at {offset} are not in shared memory region number {number} of {} bytes; this is \
                 a fault of the server",
                region.len()
            ))
        })
    }
}

fn map(region: &Region, file: Option<OwnedFd>) -> Result<Arc<PlacedMemory>> {
    let Region { name, key, offset, bytes, .. } = region;
    let Some(file) = file else {
        return Err(Error::internal(format!(
            "the host sent no file with shared memory region '{name}'"
        )));
    };
    shared_memory::Region::from_descriptor(name, key, file, *offset, *bytes)
        .map(|region| Arc::new(region).memory())
        .map_err(|e| match e {
            // The client has made it shorter since it was registered.
            OpenError::Range { .. } => shared_memory::missing_pages(name, key, *offset, *bytes),
            e => Error::internal(format!("shared memory region '{name}' cannot be mapped: {e:?}")),
        })
}
