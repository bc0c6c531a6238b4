//! Unit tests of `check`.

use super::super::ConfigFault;
use super::super::testing::{check_errors, parse};
use super::*;

#[test]
fn general_rules() {
    check_errors(
        "",
        &[
            ("backend: 'b'", "model configuration must specify 'name'"),
            ("name: 'm'", "must specify 'platform' or 'backend' for 'm'"),
            (
                "name: 'm' backend: 'b' max_batch_size: -1",
                "'max_batch_size' must be non-negative value for m",
            ),
            (
                "name: 'm' backend: 'b' default_model_filename: '../other/1/model.onnx'",
                "model file name '../other/1/model.onnx' leaves the version directory for m",
            ),
            (
                "name: 'm' backend: 'b' cc_model_filenames { key: '7.0' value: '/a' }",
                "model file name '/a' leaves the version directory for m",
            ),
            ("name: 'm' backend: 'b' default_model_filename: 'sub/model.onnx'", ""),
            ("name: 'm' backend: 'b' parameters { key: 'k' value { string_value: 'v' } }", ""),
        ],
    );
}

#[test]
fn fields_that_normalise_fills_are_required() {
    let mut config = parse("name: 'm' backend: 'b'");
    let error = |config: &ModelConfig| {
        check_config(config, &MachineFacts::default(), &InstanceSupport::every_kind(), 1024)
            .unwrap_err()[0]
            .message
            .clone()
    };
    assert_eq!(error(&config), "must specify 'version policy' for m");
    config.version_policy = parse("version_policy { all {} }").version_policy;
    assert_eq!(error(&config), "must specify one or more 'instance group's for m");
}

#[test]
fn error_classes() {
    let config = parse("name: 'm' backend: 'b' max_batch_size: -1");
    assert_eq!(
        check_config(&config, &MachineFacts::default(), &InstanceSupport::every_kind(), 1024)
            .unwrap_err()[0]
            .fault,
        ConfigFault::Invalid
    );
}

#[test]
fn every_independent_reason_is_reported() {
    let config = parse(
        "name: 'm' backend: 'b' max_batch_size: -1 version_policy { all {} } \
         input { name: 'a' data_type: TYPE_FP32 dims: 0 } input { name: 'b' dims: 1 } \
         output { name: 'c' } instance_group { count: 0 kind: KIND_CPU }",
    );
    let refused =
        check_config(&config, &MachineFacts::default(), &InstanceSupport::every_kind(), 1024);
    let texts: Vec<_> = refused.unwrap_err().into_iter().map(|e| e.message).collect();
    let subjects = ["max_batch_size", "'a' dimension", "'b' must", "'c' must", "count 0"];
    assert_eq!(texts.len(), subjects.len(), "{texts:?}");
    assert!(texts.iter().zip(subjects).all(|(text, of)| text.contains(of)), "{texts:?}");
}
