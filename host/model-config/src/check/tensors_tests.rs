//! Unit tests of `tensors.rs`.

use super::super::super::testing::{check_errors, parse};
use super::*;

const DIM: &str =
    "dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m";

#[test]
fn name_type_and_dims_rules() {
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
                "'x' has more elements than a 64-bit integer can count for m".to_owned(),
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
            check_errors("name: 'm' backend: 'b'", &[(&text, &message)]);
        }
    }
}

#[test]
fn valid_tensors_are_accepted() {
    check_errors(
        "name: 'm'",
        &[
            ("backend: 'b' input { name: 'x' data_type: TYPE_STRING dims: [ -1, 3 ] }", ""),
            (
                "backend: 'b' input { name: 'x' data_type: TYPE_FP32 dims: 1 } \
                 output { name: 'x' data_type: TYPE_FP32 dims: 1 }",
                "",
            ),
        ],
    );
}

#[test]
fn special_tensors_need_a_backend_that_declares_them() {
    let tensor = |side: &str, field: &str| {
        let tensor = format!("name: 'x' data_type: TYPE_INT32 dims: 1 {field}: true");
        parse(&format!("name: 'm' backend: 'b' {side} {{ {tensor} }}"))
    };
    let shape = tensor("input", "is_shape_tensor");
    let non_linear = tensor("output", "is_non_linear_format_io");
    for (config, flags, accepted) in [
        (&shape, backend_flags::SHAPE_TENSORS, true),
        (&shape, backend_flags::NON_LINEAR_IO, false),
        (&non_linear, backend_flags::NON_LINEAR_IO, true),
        (&non_linear, backend_flags::SHAPE_TENSORS, false),
    ] {
        let support = InstanceSupport { flags, ..InstanceSupport::every_kind() };
        assert_eq!(check_tensors(config, &support).is_empty(), accepted, "{config:?} {flags}");
    }
}

#[test]
fn image_format_rules() {
    let input = "name: 'm' backend: 'b' input { name: 'x' data_type: TYPE_FP32";
    check_errors(
        input,
        &[
            ("format: FORMAT_NHWC dims: [ 2, 2, 3 ] }", ""),
            ("format: FORMAT_NCHW dims: [ 3, -1, -1 ] }", ""),
            ("format: FORMAT_NCHW dims: [ 3, 2 ] }", "model input NHWC/NCHW require 3 dims for m"),
            (
                "format: FORMAT_NHWC dims: [ 1, 3, 2, 2 ] }",
                "model input NHWC/NCHW require 3 dims for m",
            ),
        ],
    );
}

#[test]
fn reshape_rules() {
    const SIZE: &str = "has different size for dims and reshape";
    const NUMBER: &str = "has different number of variable-size dimensions for dims and reshape";
    const EMPTY: &str =
        "cannot have empty reshape for non-batching model as scalar tensors are not supported";
    const BAD: &str = "reshape dimensions must be integer >= 1, or -1 to indicate a \
                       variable-size dimension";
    // Maximum batch size, dims, reshape, error.
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
            check_errors("name: 'm' backend: 'b'", &[(&text, &message)]);
        }
    }
}

#[test]
fn fixed_parts_are_counted_between_variable_dims() {
    assert_eq!(fixed_parts(&[2, 3, -1, 4]), Some(vec![6, 4]));
    assert_eq!(fixed_parts(&[]), Some(vec![1]));
    assert_eq!(fixed_parts(&[i64::MAX, 2]), None);
}
