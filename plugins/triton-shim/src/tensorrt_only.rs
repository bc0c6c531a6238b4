//! Settings that Triton accepts for its TensorRT backend only. The host accepts them for all
//! adapted backends, because it asks the adapter and not the library what it uses.

use crate::fault::{Result, TritonFault};
use serde_json::Value;

/// Name and platform of the backend that uses them.
const BACKEND: &str = "tensorrt";
const PLATFORM: &str = "tensorrt_plan";

/// Refuses a configuration (JSON) of a model of `backend` with such a setting. The texts are
/// Triton's.
///
/// # Errors
/// It has one.
pub fn check(backend: &str, model: &str, config: &str) -> Result<()> {
    let config: Value = serde_json::from_str(config).unwrap_or_default();
    if backend == BACKEND || config["platform"] == PLATFORM {
        return Ok(());
    }
    let items = |field: &str| config[field].as_array().map_or(&[][..], Vec::as_slice);
    let tensors = || items("input").iter().chain(items("output"));
    let has = |flag: &str| tensors().any(|tensor| tensor[flag] == true);
    let profile = |group: &Value| group["profile"].as_array().is_some_and(|list| !list.is_empty());
    let refuse = |what: &str| Err(TritonFault::invalid(format_args!("{what} for {model}")));
    if has("is_shape_tensor") {
        return refuse("shape tensors are only supported for TensorRT platform");
    }
    if has("is_non_linear_format_io") {
        return refuse("Non-linear IO format is only supported for the TensorRT platform");
    }
    match items("instance_group").iter().find(|group| profile(group)) {
        Some(group) => Err(TritonFault::invalid(format_args!(
            "instance group {} of model {model} specifies a profile, which is supported only on TensorRT models",
            group["name"].as_str().unwrap_or_default()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "tensorrt_only_tests.rs"]
mod tests;
