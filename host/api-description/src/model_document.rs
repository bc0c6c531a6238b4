//! The document of one model: its routes with the model's name, and its signature as schemas.

use crate::document::{ServerFacts, add_described, finish, schemas};
use crate::{ROUTES_V2, tensor_schema};
use serde_json::{Map, Value, json};

/// What the document says of a model.
pub struct ModelFacts<'a> {
    pub name: &'a str,
    /// Empty for the version that requests without one get.
    pub version: &'a str,
    pub inputs: Vec<TensorFacts<'a>>,
    pub outputs: Vec<TensorFacts<'a>>,
    /// Any number of responses: `infer` refuses.
    pub decoupled: bool,
    /// Outputs may differ from the configuration.
    pub free_outputs: bool,
}

/// A tensor as clients see it.
pub struct TensorFacts<'a> {
    pub name: &'a str,
    pub datatype: &'a str,
    /// With the batch dimension; -1: any.
    pub shape: &'a [i64],
    pub optional: bool,
}

/// The document as text.
///
/// # Errors
/// The schemas that are compiled in are not JSON.
pub fn describe_model(server: &ServerFacts<'_>, model: &ModelFacts<'_>) -> Result<Vec<u8>, String> {
    let mut paths = Map::new();
    for route in ROUTES_V2.iter().filter(|route| route.path.contains("/models/{model}")) {
        let is_of_signature = matches!(route.id, "infer") && model.decoupled;
        if is_of_signature || route.path.starts_with("/v2/repository/{") {
            continue;
        }
        let has_version = route.path.contains("[/versions/{version}]");
        let (whole, part) = match (has_version, model.version) {
            (true, version) if !version.is_empty() => (1, version),
            _ => (0, ""),
        };
        if let Some((path, id)) = route.paths().into_iter().nth(whole) {
            let path = path.replace("{version}", part);
            let path = match is_plain(model.name) {
                true => path.replace("{model}", model.name),
                false => path,
            };
            add_described(&mut paths, (&path, &id), route);
        }
    }
    if !is_plain(model.name) {
        limit_names(&mut paths, model.name);
    }
    let mut schemas = schemas()?;
    add_signature(&mut schemas, model);
    finish(server, &format!("{} of {}", model.name, server.name), paths, schemas)
}

/// A name that can be written into the template of a path.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b))
}

/// Any other name is the only value of the parameter.
fn limit_names(paths: &mut Map<String, Value>, name: &str) {
    let operations = paths.values_mut().filter_map(Value::as_object_mut).flatten();
    for (_, operation) in operations {
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten().filter(|p| p["name"] == "model") {
            parameter["schema"] = json!({ "const": name });
        }
    }
}

/// Puts the tensors of the model in place of those of any model.
fn add_signature(schemas: &mut Map<String, Value>, model: &ModelFacts<'_>) {
    let required = model.inputs.iter().filter(|input| !input.optional);
    let inputs: Vec<Value> = model.inputs.iter().map(tensor_schema::input).collect();
    if let Some(request) = schemas.get_mut("InferRequest") {
        request["properties"]["inputs"] = json!({
            "type": "array",
            "minItems": required.clone().count(),
            "maxItems": inputs.len(),
            "items": any_of(inputs),
        });
        let outputs: Vec<&str> = model.outputs.iter().map(|output| output.name).collect();
        request["properties"]["outputs"]["items"]["properties"]["name"] =
            json!({ "enum": outputs });
    }
    if !model.free_outputs {
        let mut outputs: Vec<Value> = model.outputs.iter().map(tensor_schema::output).collect();
        outputs.push(json!({ "$ref": "#/components/schemas/ClassifiedOutput" }));
        if let Some(response) = schemas.get_mut("InferResponse") {
            response["properties"]["outputs"]["items"] = any_of(outputs);
        }
    }
    if let Some(request) = schemas.get_mut("GenerateRequest") {
        let names: Vec<&str> = required.map(|input| input.name).collect();
        for input in &model.inputs {
            request["properties"][input.name] = tensor_schema::member(input);
        }
        request["required"] = names.into();
    }
    if let Some(response) = schemas.get_mut("GenerateResponse").filter(|_| !model.free_outputs) {
        for output in &model.outputs {
            response["properties"][output.name] = tensor_schema::member(output);
        }
    }
}

/// One of these, or anything if there are none: an empty list of schemas is not valid.
fn any_of(schemas: Vec<Value>) -> Value {
    match schemas.is_empty() {
        true => json!({}),
        false => json!({ "anyOf": schemas }),
    }
}
