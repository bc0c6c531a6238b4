//! Completing configurations: `TRITONBACKEND_ModelSetConfig` and what follows from it.

use crate::fault::{Result, TritonFault};
use crate::host::{owned_text, take_error};
use crate::objects::model::ModelObject;
use serde_json::{Map, Value, json};
use std::ffi::CStr;
use std::sync::atomic::Ordering;
use trtserver_plugin_api::abi::host::patch_format;

/// Fields that a backend may set. It may set a scheduler, too, where the configuration has none.
const FIELDS: [&str; 4] = ["max_batch_size", "input", "output", "model_transaction_policy"];
const SCHEDULERS: [&str; 3] = ["dynamic_batching", "sequence_batching", "ensemble_scheduling"];

/// Takes over what a backend adds to the configuration of its model. The backend then reads it with
/// all defaults, and the host adds it to the configuration when `TRITONBACKEND_ModelInitialize` has
/// returned.
///
/// # Errors
/// Outside of `TRITONBACKEND_ModelInitialize`, when the operator has disabled it, or if the text is
/// not a configuration.
pub fn set_config(model: &ModelObject, given: &CStr) -> Result<()> {
    if !model.completing.load(Ordering::Acquire) {
        return Err(TritonFault::unsupported(
            "TRITONBACKEND_ModelSetConfig is for TRITONBACKEND_ModelInitialize, of a model whose configuration may be completed",
        ));
    }
    let given = parse_object(given).map_err(|why| {
        TritonFault::misuse(format_args!("TRITONBACKEND_ModelSetConfig: the configuration {why}"))
    })?;
    let mut config = parse_object(&model.config()).map_err(|why| {
        TritonFault::internal(format_args!("the configuration of the host {why}"))
    })?;
    let decided = decided_fields(&config, given);
    config.extend(decided.clone());
    let patch = Value::Object(decided).to_string();
    let sent = model.scope().with(|host, scope| {
        // SAFETY: the scope is open, the bytes are valid during the call; an error is owned by the
        // caller.
        unsafe {
            let (p, n) = (patch.as_ptr(), patch.len() as u64);
            take_error(host, (host.config_patch)(scope, patch_format::COMPLETED_JSON, p, n))
        }
    });
    sent.unwrap_or_else(|| {
        Err(TritonFault::internal("the model is not being completed any more"))
    })?;
    model.set_config(owned_text(&Value::Object(config).to_string()));
    Ok(())
}

/// What the log says of a configuration that has no tensors, which Triton loads too.
pub fn missing_tensors(inputs: u32, outputs: u32, backend: &str, model: &str) -> Option<String> {
    (inputs == 0 && outputs == 0).then(|| {
        format!(
            "model '{model}': the configuration has neither inputs nor outputs, and the backend '{backend}' has not \
             completed it: requests cannot have tensors. Declare them in config.pbtxt, or in a Python model by \
             'auto_complete_config' (which --strict-model-config=true and --disable-auto-complete-config switch off)"
        )
    })
}

fn parse_object(text: &CStr) -> std::result::Result<Map<String, Value>, String> {
    match serde_json::from_slice(text.to_bytes()) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("is not a JSON object".to_owned()),
        Err(e) => Err(format!("is not JSON: {e}")),
    }
}

/// The fields of `given` that the backend decides, with all defaults.
fn decided_fields(config: &Map<String, Value>, given: Map<String, Value>) -> Map<String, Value> {
    let has_scheduler = SCHEDULERS.iter().any(|name| config.contains_key(*name));
    let mut decided = Map::new();
    for name in FIELDS {
        if let Some(value) = config.get(name) {
            decided.insert(name.to_owned(), value.clone());
        }
    }
    for (name, mut value) in given {
        let is_scheduler = SCHEDULERS.contains(&name.as_str());
        let taken = FIELDS.contains(&name.as_str()) || is_scheduler && !has_scheduler;
        if !taken || value.is_null() {
            continue;
        }
        match name.as_str() {
            "input" => with_defaults(&mut value, &input_defaults()),
            "output" => with_defaults(&mut value, &output_defaults()),
            "dynamic_batching" => add_defaults(&mut value, &dynamic_batching_defaults()),
            "model_transaction_policy" => add_defaults(&mut value, &json!({"decoupled": false})),
            _ => {}
        }
        decided.insert(name, value);
    }
    decided
}

fn input_defaults() -> Value {
    json!({
        "data_type": "TYPE_INVALID",
        "format": "FORMAT_NONE",
        "dims": [],
        "is_shape_tensor": false,
        "allow_ragged_batch": false,
        "optional": false,
        "is_non_linear_format_io": false,
    })
}

fn output_defaults() -> Value {
    json!({
        "data_type": "TYPE_INVALID",
        "dims": [],
        "label_filename": "",
        "is_shape_tensor": false,
        "is_non_linear_format_io": false,
    })
}

fn dynamic_batching_defaults() -> Value {
    json!({
        "preferred_batch_size": [],
        "max_queue_delay_microseconds": 0,
        "preserve_ordering": false,
        "priority_levels": 0,
        "default_priority_level": 0,
        "priority_queue_policy": {},
    })
}

/// Adds the defaults to every object of a list.
fn with_defaults(list: &mut Value, defaults: &Value) {
    for item in list.as_array_mut().into_iter().flatten() {
        add_defaults(item, defaults);
    }
}

fn add_defaults(value: &mut Value, defaults: &Value) {
    let (Some(value), Some(defaults)) = (value.as_object_mut(), defaults.as_object()) else {
        return;
    };
    for (name, default) in defaults {
        value.entry(name.as_str()).or_insert_with(|| default.clone());
    }
}

#[cfg(test)]
#[path = "completion_tests.rs"]
mod tests;
