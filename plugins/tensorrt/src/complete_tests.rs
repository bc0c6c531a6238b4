//! Unit tests of `complete.rs`.

use super::*;
use crate::vtable::TensorShape;
use std::ffi::CString;
use trtserver_framework::config::ConfiguredTensor;

fn tensor(name: &str, is_input: bool, kind: i32, dims: &[i64]) -> EngineTensor {
    EngineTensor {
        name: name.to_owned(),
        c_name: CString::new(name).expect("no NUL"),
        is_input,
        kind,
        shape: TensorShape::new(dims).expect("at most eight dimensions"),
        is_shape: false,
        format: 0,
        binding: 0,
    }
}

fn explicit(tensors: &[EngineTensor], profile_batch: Option<usize>) -> OfferedTensors<'_> {
    OfferedTensors { tensors, implicit_batch: None, profile_batch }
}

#[test]
fn dynamic_first_dimension_is_the_batch_of_profile_0() {
    let tensors = [tensor("x", true, 0, &[-1, 3, -1]), tensor("y", false, 1, &[-1, 10])];
    let text = config_patch(&Config::default(), &explicit(&tensors, Some(16))).expect("a patch");
    assert_eq!(
        text.as_deref(),
        Some(
            "max_batch_size: 16\ndynamic_batching { }\n\
             input { name: \"x\" data_type: TYPE_FP32 dims: 3 dims: -1 }\n\
             output { name: \"y\" data_type: TYPE_FP16 dims: 10 }\n"
        )
    );
}

#[test]
fn fixed_first_dimension_is_no_batch() {
    let tensors = [tensor("x", true, 6, &[1, 3]), tensor("y", false, 8, &[])];
    let text = config_patch(&Config::default(), &explicit(&tensors, Some(1))).expect("a patch");
    assert_eq!(
        text.as_deref(),
        Some(
            "input { name: \"x\" data_type: TYPE_UINT8 dims: 1 dims: 3 }\n\
             output { name: \"y\" data_type: TYPE_INT64 dims: 1 }\n"
        )
    );
}

#[test]
fn implicit_batch_is_not_in_the_dims() {
    let tensors = [tensor("x", true, 0, &[3]), tensor("y", false, 0, &[3])];
    let offered =
        OfferedTensors { tensors: &tensors, implicit_batch: Some(4), profile_batch: None };
    let text = config_patch(&Config::default(), &offered).expect("a patch").expect("additions");
    assert!(text.starts_with("max_batch_size: 4\n"), "{text}");
    assert!(text.contains("\"x\" data_type: TYPE_FP32 dims: 3 }"), "{text}");
}

#[test]
fn shape_tensor_is_marked_and_keeps_its_dims() {
    let mut sizes = tensor("sizes", true, 3, &[2]);
    sizes.is_shape = true;
    let tensors = [tensor("x", true, 0, &[-1, 4]), sizes, tensor("y", false, 0, &[-1, -1])];
    let text = config_patch(&Config::default(), &explicit(&tensors, Some(8))).expect("a patch");
    let text = text.expect("additions");
    assert!(
        text.contains("name: \"sizes\" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }"),
        "{text}"
    );
    assert!(text.starts_with("max_batch_size: 8\n"), "{text}");
}

#[test]
fn configured_tensor_with_all_dimensions_does_not_batch() {
    let tensors = [tensor("x", true, 0, &[-1, 4]), tensor("y", false, 0, &[-1, 4])];
    let x = ConfiguredTensor {
        name: "x".into(),
        model_dims: vec![-1, 4],
        ..ConfiguredTensor::default()
    };
    let config = Config { inputs: vec![x], ..Config::default() };
    let text = config_patch(&config, &explicit(&tensors, Some(8))).expect("a patch");
    assert_eq!(
        text.as_deref(),
        Some("output { name: \"y\" data_type: TYPE_FP32 dims: -1 dims: 4 }\n")
    );
}

#[test]
fn batch_size_of_an_engine_that_cannot_batch_is_refused() {
    let tensors = [tensor("x", true, 0, &[1, 4]), tensor("y", false, 0, &[1, 4])];
    let config = Config { max_batch_size: 8, ..Config::default() };
    let refused = config_patch(&config, &explicit(&tensors, None)).expect_err("cannot batch");
    assert!(refused.text.contains("does not support batching"), "{refused}");
}

#[test]
fn type_without_a_name_is_refused() {
    let tensors = [tensor("x", true, 10, &[-1])];
    let refused = config_patch(&Config::default(), &explicit(&tensors, None)).expect_err("FP4");
    assert!(refused.text.contains("'x'") && refused.text.contains("FP4"), "{refused}");
}
