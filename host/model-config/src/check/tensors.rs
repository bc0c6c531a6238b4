//! Checks of declared inputs and outputs: name, type, dims, reshape, image format.

use std::collections::HashSet;

use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_proto::v2::model_input::Format;
use trtserver_proto::v2::{DataType, ModelConfig, ModelTensorReshape};

use super::super::{ConfigError, ConfigPart, InstanceSupport};
use super::refuse_config;

/// Fields that inputs and outputs share.
struct TensorFields<'a> {
    /// `input` or `output`.
    side: &'static str,
    name: &'a str,
    data_type: i32,
    dims: &'a [i64],
    reshape: Option<&'a ModelTensorReshape>,
    shape_tensor: bool,
    non_linear: bool,
}

/// Checks each tensor by itself.
pub(super) fn check_tensors(config: &ModelConfig, support: &InstanceSupport) -> Vec<ConfigError> {
    let mut refused = Vec::new();
    let mut seen = HashSet::new();
    for input in &config.input {
        let tensor = TensorFields {
            side: "input",
            name: &input.name,
            data_type: input.data_type,
            dims: &input.dims,
            reshape: input.reshape.as_ref(),
            shape_tensor: input.is_shape_tensor,
            non_linear: input.is_non_linear_format_io,
        };
        if let Err(e) = check_tensor(config, support, &tensor, &mut seen) {
            refused.push(e.about(ConfigPart::Field("input")));
        } else if input.format() != Format::None && input.dims.len() != 3 {
            let text = format!("model input NHWC/NCHW require 3 dims for {}", config.name);
            refused.push(ConfigError::invalid(text).about(ConfigPart::Field("input.format")));
        }
    }
    seen.clear();
    for output in &config.output {
        let tensor = TensorFields {
            side: "output",
            name: &output.name,
            data_type: output.data_type,
            dims: &output.dims,
            reshape: output.reshape.as_ref(),
            shape_tensor: output.is_shape_tensor,
            non_linear: output.is_non_linear_format_io,
        };
        let checked = check_tensor(config, support, &tensor, &mut seen);
        refused.extend(checked.err().map(|e| e.about(ConfigPart::Field("output"))));
    }
    refused
}

fn check_tensor<'a>(
    config: &ModelConfig,
    support: &InstanceSupport,
    tensor: &TensorFields<'a>,
    seen: &mut HashSet<&'a str>,
) -> Result<(), ConfigError> {
    let model = &config.name;
    let (side, name) = (tensor.side, tensor.name);
    let refuse_tensor =
        |what: &str| refuse_config(format!("model {side} '{name}' {what} for {model}"));
    if name.is_empty() {
        return refuse_config(format!("model {side} must specify 'name' for {model}"));
    }
    if !seen.insert(name) {
        return refuse_tensor("is specified more than once");
    }
    if matches!(DataType::try_from(tensor.data_type), Err(_) | Ok(DataType::TypeInvalid)) {
        return refuse_tensor("must specify 'data_type'");
    }
    if tensor.dims.is_empty() {
        return refuse_tensor("must specify 'dims'");
    }
    if !tensor.dims.iter().all(is_valid_dim) {
        return refuse_tensor(
            "dimension must be integer >= 1, or -1 to indicate a variable-size dimension",
        );
    }
    let Some(dims) = fixed_parts(tensor.dims) else {
        return refuse_tensor("has more elements than a 64-bit integer can count");
    };
    if let Some(reshape) = tensor.reshape {
        if reshape.shape.is_empty() && config.max_batch_size == 0 {
            return refuse_tensor(
                "cannot have empty reshape for non-batching model as scalar tensors are \
                 not supported",
            );
        }
        if !reshape.shape.iter().all(is_valid_dim) {
            return refuse_tensor(
                "reshape dimensions must be integer >= 1, or -1 to indicate a variable-size \
                 dimension",
            );
        }
        let shape = fixed_parts(&reshape.shape);
        let wildcards = shape.as_ref().map(Vec::len);
        // If one side has no variable dims, the sizes differ: that is the error below.
        if wildcards.is_some_and(|n| n != dims.len() && n > 1 && dims.len() > 1) {
            return refuse_tensor(
                "has different number of variable-size dimensions for dims and reshape",
            );
        }
        if shape.is_none_or(|shape| shape != dims) {
            return refuse_tensor("has different size for dims and reshape");
        }
    }
    // Other backends would treat the tensor as an ordinary one. The texts are those of v1.11
    // (docs/protocol/v1.md §7.3) and v2.
    if tensor.shape_tensor && !support.declares(backend_flags::SHAPE_TENSORS) {
        return refuse_config(format!(
            "shape tensors are only supported for TensorRT platform for {model}"
        ));
    }
    if tensor.non_linear && !support.declares(backend_flags::NON_LINEAR_IO) {
        return refuse_config(format!(
            "Non-linear IO format is only supported for the TensorRT platform for {model}"
        ));
    }
    Ok(())
}

fn is_valid_dim(dim: &i64) -> bool {
    *dim >= 1 || *dim == -1
}

/// Element counts of the fixed parts between variable dims: `[6, 4]` for `[2, 3, -1, 4]`, `[1]` for
/// no dims. `None` if a count overflows.
fn fixed_parts(dims: &[i64]) -> Option<Vec<i64>> {
    dims.split(|&dim| dim == -1)
        .map(|part| part.iter().try_fold(1i64, |count, &dim| count.checked_mul(dim)))
        .collect()
}

#[cfg(test)]
#[path = "tensors_tests.rs"]
mod tests;
