//! Rules for declared inputs and outputs: name, type, dims, reshape, image format.

use std::collections::HashSet;

use trtserver_proto::v2::model_input::Format;
use trtserver_proto::v2::{DataType, ModelConfig, ModelTensorReshape};

use super::{ConfigError, refuse};

/// What inputs and outputs have in common.
struct Tensor<'a> {
    /// `input` or `output`.
    side: &'static str,
    name: &'a str,
    data_type: i32,
    dims: &'a [i64],
    reshape: Option<&'a ModelTensorReshape>,
    shape_tensor: bool,
    non_linear: bool,
}

pub(super) fn check(config: &ModelConfig) -> Result<(), ConfigError> {
    let mut seen = HashSet::new();
    for input in &config.input {
        let tensor = Tensor {
            side: "input",
            name: &input.name,
            data_type: input.data_type,
            dims: &input.dims,
            reshape: input.reshape.as_ref(),
            shape_tensor: input.is_shape_tensor,
            non_linear: input.is_non_linear_format_io,
        };
        one(config, &tensor, &mut seen)?;
        if input.format() != Format::None && input.dims.len() != 3 {
            return refuse(format!("model input NHWC/NCHW require 3 dims for {}", config.name));
        }
    }
    seen.clear();
    for output in &config.output {
        let tensor = Tensor {
            side: "output",
            name: &output.name,
            data_type: output.data_type,
            dims: &output.dims,
            reshape: output.reshape.as_ref(),
            shape_tensor: output.is_shape_tensor,
            non_linear: output.is_non_linear_format_io,
        };
        one(config, &tensor, &mut seen)?;
    }
    Ok(())
}

fn one<'a>(
    config: &ModelConfig,
    tensor: &Tensor<'a>,
    seen: &mut HashSet<&'a str>,
) -> Result<(), ConfigError> {
    let model = &config.name;
    let (side, name) = (tensor.side, tensor.name);
    let no = |what: &str| refuse(format!("model {side} '{name}' {what} for {model}"));
    if name.is_empty() {
        return refuse(format!("model {side} must specify 'name' for {model}"));
    }
    if !seen.insert(name) {
        return no("is specified more than once");
    }
    if matches!(DataType::try_from(tensor.data_type), Err(_) | Ok(DataType::TypeInvalid)) {
        return no("must specify 'data_type'");
    }
    if tensor.dims.is_empty() {
        return no("must specify 'dims'");
    }
    if !tensor.dims.iter().all(valid) {
        return no("dimension must be integer >= 1, or -1 to indicate a variable-size dimension");
    }
    let Some(dims) = stretches(tensor.dims) else {
        return no("has more elements than can be counted");
    };
    if let Some(reshape) = tensor.reshape {
        if reshape.shape.is_empty() && config.max_batch_size == 0 {
            return no("cannot have empty reshape for non-batching model as scalar tensors are \
                 not supported");
        }
        if !reshape.shape.iter().all(valid) {
            return no(
                "reshape dimensions must be integer >= 1, or -1 to indicate a variable-size \
                 dimension",
            );
        }
        let shape = stretches(&reshape.shape);
        let wildcards = shape.as_ref().map(Vec::len);
        // One of known size and one of unknown size differ in size first of all.
        if wildcards.is_some_and(|n| n != dims.len() && n > 1 && dims.len() > 1) {
            return no("has different number of variable-size dimensions for dims and reshape");
        }
        if shape.is_none_or(|shape| shape != dims) {
            return no("has different size for dims and reshape");
        }
    }
    // Only TensorRT has either; other backends would take the tensor for an ordinary one.
    let tensorrt = config.backend == "tensorrt" || config.platform == "tensorrt_plan";
    if tensor.shape_tensor && !tensorrt {
        return refuse(format!(
            "shape tensors are only supported for TensorRT platform for {model}"
        ));
    }
    if tensor.non_linear && !tensorrt {
        return refuse(format!(
            "Non-linear IO format is only supported for the TensorRT platform for {model}"
        ));
    }
    Ok(())
}

fn valid(dim: &i64) -> bool {
    *dim >= 1 || *dim == -1
}

/// Element counts of the stretches between variable dims: one more than there are such dims.
/// `[2, 3, -1, 4]` is `[6, 4]`, no dims at all is `[1]`. `None` when a count overflows.
fn stretches(dims: &[i64]) -> Option<Vec<i64>> {
    dims.split(|&dim| dim == -1)
        .map(|stretch| stretch.iter().try_fold(1i64, |count, &dim| count.checked_mul(dim)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::complaints;
    use super::*;

    const DIM: &str =
        "dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m";

    #[test]
    fn names_types_and_dims() {
        for side in ["input", "output"] {
            let row = |fields: &str| format!("{side} {{ {fields} }}");
            let twice = "name: 'x' data_type: TYPE_FP32 dims: 1";
            let rows = [
                (row("data_type: TYPE_FP32 dims: 1"), "must specify 'name' for m".to_owned()),
                (row("name: 'x' dims: 1"), "'x' must specify 'data_type' for m".to_owned()),
                (
                    row("name: 'x' data_type: TYPE_INVALID dims: 1"),
                    "'x' must specify 'data_type' for m".to_owned(),
                ),
                (row("name: 'x' data_type: TYPE_FP32"), "'x' must specify 'dims' for m".to_owned()),
                (row("name: 'x' data_type: TYPE_FP32 dims: [ 2, 0 ]"), format!("'x' {DIM}")),
                (row("name: 'x' data_type: TYPE_FP32 dims: -2"), format!("'x' {DIM}")),
                (
                    row("name: 'x' data_type: TYPE_BF16 dims: [ 4294967296, 4294967296 ]"),
                    "'x' has more elements than can be counted for m".to_owned(),
                ),
                (
                    format!("{} {}", row(twice), row(twice)),
                    "'x' is specified more than once for m".to_owned(),
                ),
                (
                    row("name: 'x' data_type: TYPE_FP32 dims: 1 is_shape_tensor: true"),
                    "!shape tensors are only supported for TensorRT platform for m".to_owned(),
                ),
                (
                    row("name: 'x' data_type: TYPE_FP32 dims: 1 is_non_linear_format_io: true"),
                    "!Non-linear IO format is only supported for the TensorRT platform for m"
                        .to_owned(),
                ),
            ];
            for (text, message) in rows {
                let message = match message.strip_prefix('!') {
                    Some(whole) => whole.to_owned(),
                    None => format!("model {side} {message}"),
                };
                complaints("name: 'm' backend: 'b'", &[(&text, &message)]);
            }
        }
    }

    #[test]
    fn what_is_allowed() {
        complaints(
            "name: 'm'",
            &[
                ("backend: 'b' input { name: 'x' data_type: TYPE_STRING dims: [ -1, 3 ] }", ""),
                (
                    "backend: 'b' input { name: 'x' data_type: TYPE_FP32 dims: 1 } \
                     output { name: 'x' data_type: TYPE_FP32 dims: 1 }",
                    "",
                ),
                (
                    "backend: 'tensorrt' input { name: 'x' data_type: TYPE_INT32 dims: 1 \
                     is_shape_tensor: true }",
                    "",
                ),
                (
                    "platform: 'tensorrt_plan' output { name: 'x' data_type: TYPE_INT32 dims: 1 \
                     is_non_linear_format_io: true }",
                    "",
                ),
            ],
        );
    }

    #[test]
    fn image_formats() {
        let input = "name: 'm' backend: 'b' input { name: 'x' data_type: TYPE_FP32";
        complaints(
            input,
            &[
                ("format: FORMAT_NHWC dims: [ 2, 2, 3 ] }", ""),
                ("format: FORMAT_NCHW dims: [ 3, -1, -1 ] }", ""),
                (
                    "format: FORMAT_NCHW dims: [ 3, 2 ] }",
                    "model input NHWC/NCHW require 3 dims for m",
                ),
                (
                    "format: FORMAT_NHWC dims: [ 1, 3, 2, 2 ] }",
                    "model input NHWC/NCHW require 3 dims for m",
                ),
            ],
        );
    }

    #[test]
    fn reshapes() {
        const SIZE: &str = "has different size for dims and reshape";
        const NUMBER: &str =
            "has different number of variable-size dimensions for dims and reshape";
        const EMPTY: &str =
            "cannot have empty reshape for non-batching model as scalar tensors are not supported";
        const BAD: &str = "reshape dimensions must be integer >= 1, or -1 to indicate a \
                           variable-size dimension";
        // Maximum batch size, dims, reshape, complaint.
        for (batch, dims, shape, what) in [
            (0, "6", "2, 3", ""),
            (0, "6", "2, 2", SIZE),
            (0, "1", "", EMPTY),
            (4, "1", "", ""),
            (4, "1, 1", "", ""),
            (4, "2", "", SIZE),
            (4, "-1", "", SIZE),
            (0, "4", "2, 0", BAD),
            (0, "4", "-2, -2", BAD),
            (0, "2, 3, -1, 4", "6, -1, 2, 2", ""),
            (0, "2, -1", "-1, 2", SIZE),
            (0, "-1, 4", "4", SIZE),
            (0, "4", "-1", SIZE),
            (0, "-1, 4", "-1, -1", NUMBER),
            (0, "4", "4294967296, 4294967296", SIZE),
        ] {
            for side in ["input", "output"] {
                let text = format!(
                    "max_batch_size: {batch} {side} {{ name: 'x' data_type: TYPE_FP32 \
                     dims: [ {dims} ] reshape {{ shape: [ {shape} ] }} }}"
                );
                let message = match what {
                    "" => String::new(),
                    what => format!("model {side} 'x' {what} for m"),
                };
                complaints("name: 'm' backend: 'b'", &[(&text, &message)]);
            }
        }
    }

    #[test]
    fn stretches_between_variable_dims() {
        assert_eq!(stretches(&[2, 3, -1, 4]), Some(vec![6, 4]));
        assert_eq!(stretches(&[]), Some(vec![1]));
        assert_eq!(stretches(&[i64::MAX, 2]), None);
    }
}
