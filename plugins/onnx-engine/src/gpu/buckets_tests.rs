//! Unit tests of `buckets.rs`.

use super::*;
use crate::check::OnnxTensor;
use ort_sys::ONNXTensorElementDataType as Element;

#[test]
fn sizes_are_the_preferred_ones_or_powers_of_two_and_the_maximum() {
    let table: &[(&[u32], usize, &[usize])] = &[
        (&[], 0, &[1]),
        (&[], 1, &[1]),
        (&[], 2, &[1, 2]),
        (&[], 8, &[1, 2, 4, 8]),
        (&[], 12, &[1, 2, 4, 8, 12]),
        (&[], 32, &[1, 2, 4, 8, 16, 32]),
        (&[8, 4], 16, &[4, 8, 16]),
        (&[4, 8, 8], 8, &[4, 8]),
        (&[0, 3, 64], 8, &[3, 8]),
        (&[8], 8, &[1, 2, 4, 8]),
        (&[64], 4, &[1, 2, 4]),
    ];
    for &(preferred, max, expected) in table {
        assert_eq!(bucket_sizes(preferred, max), expected, "{preferred:?} {max}");
    }
}

#[test]
fn batch_is_padded_to_the_next_size() {
    let find = |rows| find_bucket([1, 4, 8].into_iter(), rows);
    let found: Vec<_> = [1, 2, 4, 5, 8, 9].into_iter().map(find).collect();
    assert_eq!(found, [Some(0), Some(1), Some(1), Some(2), Some(2), None]);
}

fn slot(dims: &[i64]) -> TensorSlot {
    let handle = OnnxTensor {
        c_name: c"IN".to_owned(),
        element: Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
    };
    TensorSlot {
        name: "IN".to_owned(),
        dtype: dtype::FP32,
        dims: dims.to_vec(),
        unranked: false,
        scalar: false,
        reshape: None,
        optional: false,
        flat: false,
        passed: false,
        configured: None,
        handle,
    }
}

fn configured(dims: &[i64]) -> ConfiguredTensor {
    let model_dims = dims.to_vec();
    ConfiguredTensor { name: "IN".to_owned(), model_dims, ..Default::default() }
}

#[test]
fn file_and_configuration_fix_dimensions_together() {
    /// Dimensions of the file, batching, dimensions of the configuration, result.
    type Case<'a> = (&'a [i64], bool, &'a [i64], Option<&'a [i64]>);
    let table: &[Case<'_>] = &[
        (&[-1, 3, 8], true, &[3, 8], Some(&[3, 8])),
        (&[-1, 3, -1], true, &[3, 8], Some(&[3, 8])),
        (&[-1, 3, -1], true, &[3, -1], None),
        (&[-1, -1], false, &[4, 8], Some(&[4, 8])),
        (&[-1, 8], false, &[-1, 8], None),
        (&[-1], true, &[], Some(&[])),
    ];
    for &(dims, batching, given, expected) in table {
        let fixed = fixed_dims(&slot(dims), Some(&configured(given)), batching);
        assert_eq!(fixed.as_deref(), expected, "{dims:?} {given:?}");
    }
    assert_eq!(fixed_dims(&slot(&[-1, -1]), None, true), None);
    let unranked = TensorSlot { unranked: true, ..slot(&[]) };
    assert_eq!(fixed_dims(&unranked, Some(&configured(&[4])), true), Some(vec![4]));
}

#[test]
fn models_that_cannot_be_padded_are_told_why() {
    let with = |change: fn(&mut Config)| {
        let tensors = || vec![configured(&[4])];
        let mut config = Config { inputs: tensors(), outputs: tensors(), ..Config::default() };
        change(&mut config);
        config
    };
    let cuda = || [ExecutionProvider::Cuda].into_iter();
    assert_eq!(expect_fixed_inputs(&with(|_| {}), cuda()), Ok(()));
    type Case<'a> = (fn(&mut Config), &'a str);
    let table: &[Case<'_>] = &[
        (|config| config.facts.has_sequences = true, "has sequences"),
        (|config| config.inputs[0].optional = true, "may omit the input 'IN'"),
        (|config| config.inputs[0].dtype = dtype::STRING, "input 'IN' has strings"),
        (|config| config.inputs[0].shape_tensor = true, "input 'IN' are a shape"),
        (|config| config.inputs[0].model_dims = vec![3, -1], "input 'IN' of shape [3,-1] has a"),
        (|config| config.inputs[0].ragged = true, "ragged inputs"),
        (|config| config.facts.batch_outputs.push("IN".to_owned()), "ragged inputs"),
        (|config| config.outputs[0].dtype = dtype::STRING, "output 'IN' has strings"),
    ];
    for (change, part) in table {
        let why = expect_fixed_inputs(&with(*change), cuda()).unwrap_err();
        assert!(why.contains(part), "{why}\n{part}");
    }
    let both = [ExecutionProvider::TensorRt, ExecutionProvider::Cuda].into_iter();
    let why = expect_fixed_inputs(&with(|_| {}), both).unwrap_err();
    assert_eq!(why, "the model uses the TensorrtExecutionProvider");
    assert_eq!(expect_fixed_outputs(&with(|_| {})), Ok(()));
    let variable = with(|config| config.outputs[0].model_dims = vec![-1]);
    assert_eq!(expect_fixed_inputs(&variable, cuda()), Ok(()));
    let why = expect_fixed_outputs(&variable).unwrap_err();
    assert_eq!(why, "output 'IN' of shape [-1] has a variable dimension");
}

#[test]
fn parameters_of_the_model_come_before_settings() {
    let settings = |key: &str| (key == BUCKETS_SETTING).then_some("0");
    let defaults = BucketSwitches::from_settings(settings).unwrap();
    let expected = BucketSwitches { buckets: Switch::Off, ..BucketSwitches::default() };
    assert_eq!(defaults, expected);
    let params = [("other", "x"), (BUCKETS, "auto"), (GRAPHS, "true"), (SHARED, "0")];
    let own = defaults.with_parameters(params.into_iter()).unwrap();
    let (buckets, graphs, shared) = (Switch::Automatic, Switch::On, Switch::Off);
    assert_eq!(own, BucketSwitches { buckets, graphs, shared });
    let wrong = defaults.with_parameters([(GRAPHS, "yes")].into_iter()).unwrap_err();
    assert_eq!(wrong.text, "parameter 'enable_cuda_graph' must be 0, 1 or auto, not 'yes'");
}
