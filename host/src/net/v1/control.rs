//! Calls around the models: profile, explicit control, shared memory, the list of what the repository holds.

use crate::error::{Error, Result};
use crate::net::context::{Context, list};
use crate::repository::lifecycle::LoadError;
use trtserver_proto::v1::ModelRepositoryIndex;
use trtserver_proto::v1::model_repository_index::ModelEntry;

/// Profiling was never more than a switch for a tool of its time; it answers as a server on which it is off.
pub fn profile(ctx: &Context) -> Result<()> {
    ctx.require_ready()?;
    Err(Error::unsupported("Profile API not enabled"))
}

/// What can be asked of a model as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Load,
    Unload,
}

/// Load or unload of a model on request; returns when it is done.
pub async fn model(ctx: &Context, name: &str, change: Change) -> Result<()> {
    ctx.refuse_when_exiting()?;
    let control = ctx.control()?;
    match change {
        Change::Load => control.load(name, None).await.map_err(|e| not_loaded(name, e)),
        Change::Unload => control.unload(name, false).await.map_err(|e| not_loaded(name, e)),
    }
}

/// The texts of v1.x (contract/v1 §6.7). Reasons are in the log, and versions have theirs in the status.
fn not_loaded(name: &str, e: LoadError) -> Error {
    let why = match e {
        // That a configuration is wrong was found out by polling too.
        LoadError::NotPolled(_) | LoadError::Refused(_) => {
            "failed to poll from model repository".to_owned()
        }
        LoadError::Internal(why) => why,
        LoadError::NoVersion => "no version is available".to_owned(),
        LoadError::Versions(failed) => {
            let numbers: Vec<String> = failed.iter().map(|(n, _)| n.to_string()).collect();
            format!("versions that are not available: {}", numbers.join(","))
        }
        LoadError::Stopping => return Error::unavailable("Server exiting"),
    };
    Error::internal(format!("failed to load '{name}', {why}"))
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
pub async fn index(ctx: &Context) -> Result<ModelRepositoryIndex> {
    ctx.refuse_when_exiting()?;
    let models = list(ctx).await?.into_iter().map(|listed| ModelEntry { name: listed.name });
    Ok(ModelRepositoryIndex { models: models.collect() })
}
