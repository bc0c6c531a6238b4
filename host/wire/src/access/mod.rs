//! Who may call which endpoint. The router asks once for each request, before a frontend serves it;
//! the frontend turns a refusal into its own status.
//!
//! - [`AccessGate`] checks a request: restrictions by header (docs/protocol/v2.md §2.20), the
//!   control listener, and names with scopes and limits (docs/security.md). A server without any of
//!   them has no gate.
//! - [`EndpointAccess`] is what it must know of an endpoint. Calls that name their model in a
//!   message are checked when it is read: inference where the model is looked up
//!   (`FrontendContext::check_model`), all others before they are served.
//! - [`NameTable`] has the names of the auth file, which [`AuthReloader`] reads again and again.
//! - [`ClientLookup`] says which client a request is of, where clients are served in turn.
//! - [`audit`] logs calls that change the server.

pub mod audit;
mod endpoint;
mod fairness;
mod gate;
mod limits;
mod names;
mod refusal;
mod reload;

pub use endpoint::{ControlAction, EndpointAccess};
pub use fairness::ClientLookup;
pub use gate::{AccessGate, AccessRules, AdmittedRequest, Caller, remove_token};
pub use limits::InFlightRequest;
pub use names::{CallerGrant, NameTable};
pub use refusal::AccessRefusal;
pub use reload::AuthReloader;

use http::HeaderMap;
use subtle::ConstantTimeEq;
use trtserver_config::{ApiGroup, ApiRestrictions};

/// The protocol that a request came by. Each has restrictions of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerProtocol {
    Http,
    Grpc,
}

/// The header that a request for an endpoint of `groups` lacks, if any.
fn missing_header<'r>(
    restrictions: &'r ApiRestrictions,
    groups: &[ApiGroup],
    headers: &HeaderMap,
) -> Option<&'r str> {
    let missing =
        groups.iter().filter_map(|group| restrictions.for_group(*group)).find(|restriction| {
            // Names of headers ignore case. Equal in constant time: the time must not tell how much
            // of a value is right.
            let sent = headers.get(&restriction.header);
            !sent.is_some_and(|sent| sent.as_bytes().ct_eq(restriction.value()).into())
        });
    missing.map(|restriction| restriction.header.as_str())
}

/// The group of a gRPC method, v1 or v2, by its path. Reflection is in none: it shows the services,
/// not the models.
pub fn groups_of_rpc(path: &str) -> &'static [ApiGroup] {
    use ApiGroup::*;
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
    match (service, method) {
        ("grpc.reflection.v1.ServerReflection" | "grpc.reflection.v1alpha.ServerReflection", _) => {
            &[]
        }
        (_, "Check" | "ServerLive" | "ServerReady" | "ModelReady" | "Health") => &[Health],
        (_, "ServerMetadata" | "ModelMetadata") => &[Metadata],
        (_, "ModelInfer" | "ModelStreamInfer" | "Infer" | "StreamInfer" | "InferStream") => {
            &[Inference]
        }
        (_, "ModelConfig") => &[ModelConfig],
        (_, "ModelStatistics") => &[Statistics],
        ("xds.service.orca.v3.OpenRcaService", _) => &[Metrics],
        (_, "Status") => STATUS_V1,
        (
            _,
            "RepositoryIndex"
            | "RepositoryModelLoad"
            | "RepositoryModelUnload"
            | "ModelControl"
            | "Repository",
        ) => &[ModelRepository],
        (_, "TraceSetting" | "Profile") => &[Trace],
        (_, "LogSettings") => &[Logging],
        (_, method) if method.contains("SharedMemory") => &[SharedMemory],
        // Unknown methods are refused without a look at them, as long as anything is restricted.
        _ => ALL,
    }
}

/// The status of v1 contains metadata, configurations and statistics.
pub const STATUS_V1: &[ApiGroup] =
    &[ApiGroup::Metadata, ApiGroup::ModelConfig, ApiGroup::Statistics];

/// Of an RPC that is not known.
pub const ALL: &[ApiGroup] = &[
    ApiGroup::Health,
    ApiGroup::Metadata,
    ApiGroup::Inference,
    ApiGroup::SharedMemory,
    ApiGroup::ModelConfig,
    ApiGroup::ModelRepository,
    ApiGroup::Statistics,
    ApiGroup::Trace,
    ApiGroup::Logging,
];

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
