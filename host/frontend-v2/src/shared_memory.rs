//! Client shared memory in requests of v2, which the server must allow (docs/protocol/v2.md §2.16).

use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_request::TensorData;
use trtserver_request::memory::OutputMemory;
use trtserver_request::shared_memory::RegionRegistry;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::regions::{SHARED_MEMORY_DISABLED, not_usable};
use trtserver_wire::shared_memory::RegionSlice;

/// The regions that requests may use; none unless the server allows client shared memory.
#[derive(Clone, Copy)]
pub struct RequestRegions<'a>(Option<&'a RegionRegistry>);

impl<'a> RequestRegions<'a> {
    pub const DISABLED: Self = Self(None);

    pub fn from_context(ctx: &'a FrontendContext) -> Self {
        Self(ctx.settings.allow_client_shm.then_some(&ctx.shared_memory))
    }

    pub fn input(self, slice: &RegionSlice) -> Result<TensorData> {
        slice.input(self.registry()?).map_err(|e| not_usable(&slice.region, e))
    }

    pub fn output(self, slice: &RegionSlice) -> Result<Arc<OutputMemory>> {
        slice.output(self.registry()?).map_err(|e| not_usable(&slice.region, e))
    }

    fn registry(self) -> Result<&'a RegionRegistry> {
        self.0.ok_or_else(|| Error::unsupported(SHARED_MEMORY_DISABLED))
    }
}
