//! The repository index, and loading and unloading by request, over HTTP.

use super::json::access::wrong_type;
use super::json::{self, Object, Value};
use crate::repository;
use crate::repository::{CONFIG, DEPENDENTS, FILE, LoadParameters};
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use trtserver_base::error::{Error, Result};
use trtserver_proto::v2::repository_index_response::ModelIndex;
use trtserver_wire::context::Context;
use trtserver_wire::decode_workers;
use trtserver_wire::decode_workers::MAX_INLINE;

pub async fn index(ctx: &Context, repository: &str, body: &[u8]) -> Result<Vec<ModelIndex>> {
    repository::index(ctx, repository, only_ready(body)?).await
}

/// Loads or unloads the model `name`.
pub async fn control(
    ctx: &Context,
    repository: &str,
    name: &str,
    load: bool,
    body: Bytes,
) -> Result<()> {
    let control = repository::allowed(ctx, repository)?;
    if load {
        let (heavy, model) = (body.len() > MAX_INLINE, name.to_owned());
        let read = move || read(&body, |parameters| load_parameters(&model, parameters));
        let parameters = decode_workers::run_if(heavy, read).await??;
        repository::load(&control, name, parameters).await
    } else {
        // As in Triton, a body that cannot be read does not keep the model loaded.
        let dependents = read(&body, dependents).unwrap_or_else(|e| {
            tracing::warn!("unload of model '{name}': the request body is ignored: {}", e.message);
            false
        });
        repository::unload(&control, name, dependents).await
    }
}

/// Reads the `parameters` of a body. Both are optional.
fn read<T: Default>(body: &[u8], take: impl FnOnce(Object<'_>) -> Result<T>) -> Result<T> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    let Value::Object(object) = json::parse(body)? else {
        return Err(wrong_type("request", "object"));
    };
    match object.get("parameters")? {
        None => Ok(T::default()),
        Some(Value::Object(parameters)) => take(parameters),
        Some(_) => Err(wrong_type("parameters", "object")),
    }
}

fn load_parameters(name: &str, parameters: Object<'_>) -> Result<LoadParameters> {
    let mut read = LoadParameters::default();
    for member in parameters.members() {
        let (key, value) = member?;
        let key = String::from_utf8_lossy(&key);
        let Value::String(text) = &value else { return Err(wrong_type(&key, "string")) };
        match &*key {
            CONFIG => read.config = Some(String::from_utf8_lossy(text).into_owned()),
            file if file.starts_with(FILE) => {
                let content = BASE64_STANDARD.decode(text).map_err(|e| {
                    Error::invalid(format!("load parameter '{file}' of model '{name}': {e}"))
                })?;
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
        Some(Value::Bool(dependents)) => Ok(dependents),
        Some(_) => Err(wrong_type(DEPENDENTS, "boolean")),
    }
}

/// The field `ready` of a repository index request.
fn only_ready(body: &[u8]) -> Result<bool> {
    if body.trim_ascii().is_empty() {
        return Ok(false);
    }
    let wrong = || Error::invalid("Invalid value for 'ready': expected a boolean");
    let [ready] = json::pick(body, ["ready"])?;
    match ready {
        None => Ok(false),
        Some(Value::Bool(ready)) => Ok(ready),
        Some(_) => Err(wrong()),
    }
}
