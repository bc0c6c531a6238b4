//! Calls around the models: profile, explicit control, shared memory, the list of what the repository holds.

use crate::error::{Error, Result};
use crate::net::context::{Context, no_explicit_control};
use trtserver_proto::v1::ModelRepositoryIndex;
use trtserver_proto::v1::model_repository_index::ModelEntry;

/// Profiling was never more than a switch for a tool of its time; it answers as a server on which it is off.
pub fn profile(ctx: &Context) -> Result<()> {
    ctx.require_ready()?;
    Err(Error::unsupported("Profile API not enabled"))
}

/// Load or unload of a model on request.
pub fn model(ctx: &Context) -> Result<()> {
    ctx.refuse_when_exiting()?;
    Err(no_explicit_control())
}

/// What can be asked of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedMemory<'a> {
    Register(&'a str),
    /// Regions that are not known may be unregistered: a client that tidies up must not fail.
    Unregister,
    /// The list, which is empty.
    Status,
}

/// As long as no region can be registered there is none to forget and none to list.
pub fn shared_memory(ctx: &Context, call: SharedMemory) -> Result<()> {
    ctx.refuse_when_exiting()?;
    match call {
        SharedMemory::Register(name) => Err(Error::unsupported(format!(
            "failed to register shared memory region '{name}': shared memory is not supported"
        ))),
        SharedMemory::Unregister | SharedMemory::Status => Ok(()),
    }
}

/// All models of the repositories, served or not, also those whose configuration was refused.
pub fn index(ctx: &Context) -> Result<ModelRepositoryIndex> {
    ctx.refuse_when_exiting()?;
    let models = ctx.repository.models().into_keys().map(|name| ModelEntry { name }).collect();
    Ok(ModelRepositoryIndex { models })
}
