//! Restricted endpoints (docs/protocol/v2.md §2.20): a request for an endpoint of a restricted group needs the group's header.

use http::HeaderMap;
use subtle::ConstantTimeEq;
use trtserver_config::{ApiGroup, Restrictions};

/// The header that a request for an endpoint of `groups` lacks, if any. An endpoint that shows data of several groups needs the
/// headers of all of them.
pub fn missing_header<'r>(
    restrictions: &'r Restrictions,
    groups: &[ApiGroup],
    headers: &HeaderMap,
) -> Option<&'r str> {
    let missing = groups.iter().filter_map(|group| restrictions.of(*group)).find(|restriction| {
        // Names of headers ignore case. Equal in constant time: the time must not tell how much of a value is right.
        let sent = headers.get(&restriction.header);
        !sent.is_some_and(|sent| sent.as_bytes().ct_eq(restriction.value()).into())
    });
    missing.map(|restriction| restriction.header.as_str())
}

/// The group of a gRPC method, v1 or v2, by its path. Reflection is in none: it shows the services, not the models.
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
#[path = "restricted_tests.rs"]
mod tests;
