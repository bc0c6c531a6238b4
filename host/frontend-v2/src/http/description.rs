//! `GET /v2/docs` and `GET /v2/models/{m}[/versions/{v}]/docs`: the API as an OpenAPI document.

use crate::find_ready;
use trtserver_api_description::{ModelFacts, ServerFacts, TensorFacts, document, model_document};
use trtserver_base::error::{Error, Result};
use trtserver_request::{ModelSignature, TensorSpec};
use trtserver_wire::context::FrontendContext;

/// The document of the server.
pub fn describe_server(ctx: &FrontendContext) -> Result<Vec<u8>> {
    document::describe_server(&server_facts(ctx)).map_err(Error::internal)
}

/// The document of a model that serves.
pub fn describe_model(ctx: &FrontendContext, name: &str, version: &str) -> Result<Vec<u8>> {
    let served = find_ready(ctx, name, version)?;
    let signature = &served.signature;
    let shapes = |tensors: &[TensorSpec]| -> Vec<Vec<i64>> {
        tensors.iter().map(|tensor| signature.full_dims(tensor).to_vec()).collect()
    };
    let (inputs, outputs) = (shapes(&signature.inputs), shapes(&signature.outputs));
    let model = ModelFacts {
        name,
        version,
        inputs: tensors(&signature.inputs, &inputs),
        outputs: tensors(&signature.outputs, &outputs),
        decoupled: served.decoupled(),
        free_outputs: has_free_outputs(signature),
    };
    model_document::describe_model(&server_facts(ctx), &model).map_err(Error::internal)
}

/// The backend, or the rows of a batch, decide on the shape of some output.
fn has_free_outputs(signature: &ModelSignature) -> bool {
    signature.free_outputs || signature.outputs.iter().any(|output| output.cut_like.is_some())
}

fn tensors<'a>(specs: &'a [TensorSpec], shapes: &'a [Vec<i64>]) -> Vec<TensorFacts<'a>> {
    let facts = |(spec, shape): (&'a TensorSpec, &'a Vec<i64>)| TensorFacts {
        name: &spec.name,
        datatype: spec.dtype.v2_name(),
        shape,
        optional: spec.optional,
    };
    specs.iter().zip(shapes).map(facts).collect()
}

fn server_facts(ctx: &FrontendContext) -> ServerFacts<'_> {
    let settings = &ctx.settings;
    ServerFacts {
        name: &settings.server_name,
        version: &settings.server_version,
        page: settings.ui,
        metrics: settings.http_metrics,
        tokens: settings.access.auth_file.is_some(),
    }
}
