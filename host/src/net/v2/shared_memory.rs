//! Client shared memory in requests of v2, which the server must allow (docs/protocol/v2.md §2.16).

use super::regions::{SHARED_MEMORY_DISABLED, not_usable};
use crate::error::{Error, Result};
use crate::net::context::Context;
use crate::net::shared_memory::RegionSlice;
use crate::request::TensorData;
use crate::request::memory::OutputMemory;
use crate::shared_memory::Registry;
use std::sync::Arc;

/// The regions that requests may use; none unless the server allows client shared memory.
#[derive(Clone, Copy)]
pub struct Regions<'a>(Option<&'a Registry>);

impl<'a> Regions<'a> {
    pub const DISABLED: Self = Self(None);

    pub fn of(ctx: &'a Context) -> Self {
        Self(ctx.settings.allow_client_shm.then_some(&ctx.shared_memory))
    }

    pub fn input(self, slice: &RegionSlice) -> Result<TensorData> {
        slice.input(self.registry()?).map_err(|e| not_usable(&slice.region, e))
    }

    pub fn output(self, slice: &RegionSlice) -> Result<Arc<OutputMemory>> {
        slice.output(self.registry()?).map_err(|e| not_usable(&slice.region, e))
    }

    fn registry(self) -> Result<&'a Registry> {
        self.0.ok_or_else(|| Error::unsupported(SHARED_MEMORY_DISABLED))
    }
}
