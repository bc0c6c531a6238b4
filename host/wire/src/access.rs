//! Who may call which endpoint. The router asks once for each request, before a frontend serves it;
//! the frontend turns a refusal into its own status.
//!
//! So far a caller is known by its headers only: restricted endpoints (docs/protocol/v2.md §2.20)
//! need the header of their group.

use http::HeaderMap;
use subtle::ConstantTimeEq;
use trtserver_config::{ApiGroup, ApiRestrictions, ServerSettings};

/// The protocol that a request came by. Each has restrictions of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerProtocol {
    Http,
    Grpc,
}

/// What is known of the caller of a request.
pub struct Caller<'a> {
    /// The headers of the request's head; gRPC calls them metadata.
    pub headers: &'a HeaderMap,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum AccessRefusal<'s> {
    /// The endpoint is restricted: the request has no header of this name with the value that the
    /// start line gives.
    MissingHeader(&'s str),
}

/// Decides whether `caller` may call an endpoint of `groups`, which are asked for only if anything
/// is restricted. An endpoint that shows data of several groups needs the headers of all of them; a
/// path without an endpoint has no group.
///
/// # Errors
/// The request is to be refused.
pub fn check_access<'s>(
    settings: &'s ServerSettings,
    protocol: CallerProtocol,
    caller: &Caller<'_>,
    groups: impl FnOnce() -> &'static [ApiGroup],
) -> Result<(), AccessRefusal<'s>> {
    let restrictions = match protocol {
        CallerProtocol::Http => &settings.http_restricted,
        CallerProtocol::Grpc => &settings.grpc_restricted,
    };
    let Some(restrictions) = restrictions else { return Ok(()) };
    match missing_header(restrictions, groups(), caller.headers) {
        Some(header) => Err(AccessRefusal::MissingHeader(header)),
        None => Ok(()),
    }
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

const ALL: &[ApiGroup] = &[
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
#[path = "access_tests.rs"]
mod tests;
