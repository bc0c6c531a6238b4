//! Server and model metadata, liveness and readiness.

use super::lookup::{find_ready, parse_version};
use trtserver_base::error::Result;
use trtserver_proto::v2::{
    ModelMetadataResponse, ServerMetadataResponse, model_metadata_response::TensorMetadata,
};
use trtserver_request::{ModelSignature, TensorSpec};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::regions::gpu_driver;

/// In Triton's order.
const EXTENSIONS: [&str; 13] = [
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
];

/// The server is live as soon as it responds, as in v1: a liveness probe must not kill a server
/// that loads its models. (Triton opens its ports only after that.)
pub fn is_server_live(ctx: &FrontendContext) -> Result<bool> {
    ctx.refuse_when_exiting()?;
    Ok(ctx.state.is_live())
}

pub fn is_server_ready(ctx: &FrontendContext) -> Result<bool> {
    ctx.refuse_when_exiting()?;
    Ok(ctx.is_ready())
}

/// False for models that are not served, known or not. Only an invalid version text is an error.
pub fn model_ready(ctx: &FrontendContext, name: &str, version: &str) -> Result<bool> {
    ctx.refuse_when_exiting()?;
    Ok(ctx.models.is_ready(name, parse_version(version)?))
}

pub fn server_metadata(ctx: &FrontendContext) -> ServerMetadataResponse {
    let offered = |extension: &str| match extension {
        "system_shared_memory" => ctx.settings.allow_client_shm,
        "cuda_shared_memory" => ctx.settings.allow_client_shm && gpu_driver(ctx).is_some(),
        _ => true,
    };
    ServerMetadataResponse {
        name: ctx.settings.server_name.clone(),
        version: ctx.settings.server_version.clone(),
        extensions: EXTENSIONS.into_iter().filter(|e| offered(e)).map(str::to_owned).collect(),
    }
}

/// The ids of the models that serve, in their order.
pub fn served_models(ctx: &FrontendContext) -> Vec<String> {
    let all = ctx.models.all();
    all.into_keys().filter(|id| ctx.models.is_ready(id, None)).collect()
}

pub fn model_metadata(
    ctx: &FrontendContext,
    name: &str,
    version: &str,
) -> Result<ModelMetadataResponse> {
    let served = find_ready(ctx, name, version)?;
    let versions = match ctx.models.get(name) {
        Some(model) if version.is_empty() => model.ready_versions(),
        _ => vec![served.version],
    };
    let config = &served.config;
    let signature = &served.signature;
    Ok(ModelMetadataResponse {
        name: config.name.clone(),
        versions: versions.iter().map(i64::to_string).collect(),
        platform: match config.platform.as_str() {
            "" => config.backend.clone(),
            platform => platform.to_owned(),
        },
        inputs: signature.inputs.iter().map(|t| tensor(signature, t)).collect(),
        outputs: signature.outputs.iter().map(|t| tensor(signature, t)).collect(),
    })
}

fn tensor(signature: &ModelSignature, spec: &TensorSpec) -> TensorMetadata {
    TensorMetadata {
        name: spec.name.to_string(),
        datatype: spec.dtype.v2_name().to_owned(),
        shape: signature.full_dims(spec).to_vec(),
    }
}
