//! The repository index, and loading and unloading by request, over HTTP.

use super::base64_text::decode_base64;
use super::json::access::wrong_type;
use super::json::{self, JsonValue, Object};
use crate::repository;
use crate::repository::{CONFIG, DEPENDENTS, FILE, LoadParameters};
use bytes::Bytes;
use trtserver_base::error::{Error, Result};
use trtserver_proto::v2::repository_index_response::ModelIndex;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers;
use trtserver_wire::decode_workers::MAX_INLINE;

pub async fn list_repository(
    ctx: &FrontendContext,
    repository: &str,
    body: &[u8],
) -> Result<Vec<ModelIndex>> {
    repository::repository_index(ctx, repository, only_ready(body)?).await
}

/// Loads or unloads the model `name`.
pub async fn control_model(
    ctx: &FrontendContext,
    repository: &str,
    name: &str,
    load: bool,
    body: Bytes,
) -> Result<()> {
    let control = repository::expect_allowed(ctx, repository)?;
    if load {
        let (heavy, model) = (body.len() > MAX_INLINE, name.to_owned());
        let read = move || read(&body, |parameters| load_parameters(&model, parameters));
        let parameters = decode_workers::run_if(heavy, read).await??;
        repository::load_model(&control, name, parameters).await
    } else {
        // As in Triton, a body that cannot be read does not keep the model loaded.
        let dependents = read(&body, dependents).unwrap_or_else(|e| {
            tracing::warn!("unload of model '{name}': the request body is ignored: {}", e.message);
            false
        });
        repository::unload_model(&control, name, dependents).await
    }
}

/// Reads the `parameters` of a body. Both are optional.
fn read<T: Default>(body: &[u8], take: impl FnOnce(Object<'_>) -> Result<T>) -> Result<T> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    let JsonValue::Object(object) = json::parse_json(body)? else {
        return Err(wrong_type("request", "object"));
    };
    match object.get("parameters")? {
        None => Ok(T::default()),
        Some(JsonValue::Object(parameters)) => take(parameters),
        Some(_) => Err(wrong_type("parameters", "object")),
    }
}

fn load_parameters(name: &str, parameters: Object<'_>) -> Result<LoadParameters> {
    let mut read = LoadParameters::default();
    for member in parameters.members() {
        let (key, value) = member?;
        let key = String::from_utf8_lossy(&key);
        let JsonValue::String(text) = &value else { return Err(wrong_type(&key, "string")) };
        match &*key {
            CONFIG => read.config = Some(String::from_utf8_lossy(text).into_owned()),
            file if file.starts_with(FILE) => {
                let subject = || format!("load parameter '{file}' of model '{name}'");
                let content = decode_base64(text, subject)?;
                read.add_file(name, file, content.into())?;
            }
            _ => return Err(Error::internal("unexpected error on creating Triton parameter")),
        }
    }
    Ok(read)
}

fn dependents(parameters: Object<'_>) -> Result<bool> {
    match parameters.get(DEPENDENTS)? {
        None => Ok(false),
        Some(JsonValue::Bool(dependents)) => Ok(dependents),
        Some(_) => Err(wrong_type(DEPENDENTS, "boolean")),
    }
}

/// The field `ready` of a repository index request.
fn only_ready(body: &[u8]) -> Result<bool> {
    if body.trim_ascii().is_empty() {
        return Ok(false);
    }
    let wrong = || Error::invalid("Invalid value for 'ready': expected a boolean");
    let [ready] = json::pick_members(body, ["ready"])?;
    match ready {
        None => Ok(false),
        Some(JsonValue::Bool(ready)) => Ok(ready),
        Some(_) => Err(wrong()),
    }
}
