//! Unit tests of `complete.rs`.

use super::*;
use crate::check::tests::declared;

fn signature(dims: &[i64]) -> Signature {
    Signature {
        inputs: vec![declared("a\"b", 1, dims)],
        outputs: vec![declared("y", 8, dims), declared("map", 0, &[])],
        defaulted: vec![],
    }
}

fn filled(config: &Config, dims: &[i64]) -> String {
    patch(config, &signature(dims), 4).unwrap().unwrap_or_default()
}

fn named() -> Config {
    Config { model: "M".into(), ..Config::default() }
}

#[test]
fn a_dynamic_first_dimension_is_the_batch() {
    assert_eq!(
        filled(&named(), &[-1, 3, -1]),
        "max_batch_size: 4\ndynamic_batching { }\n\
         input { name: \"a\\\"b\" data_type: TYPE_FP32 dims: [ 3, -1 ] }\n\
         output { name: \"y\" data_type: TYPE_STRING dims: [ 3, -1 ] }\n"
    );
    assert!(filled(&named(), &[-1]).contains("dims: [ 1 ] reshape { shape: [ ] } }"));
    assert!(!filled(&named(), &[2, 3]).contains("max_batch_size"));
    assert!(filled(&named(), &[]).contains("dims: [ 1 ] }"));
}

#[test]
fn configured_values_are_kept() {
    let mut config = named();
    config.max_batch_size = 16;
    let text = filled(&config, &[-1, 3]);
    assert!(!text.contains("max_batch_size") && text.contains("dims: [ 3 ]"), "{text}");
    let text = patch(&config, &signature(&[1, 3]), 4).unwrap_err().text;
    assert!(text.contains("model does not support batching while non-zero"));

    let mut config = named();
    config.facts.has_scheduler = true;
    assert!(!filled(&config, &[-1, 3]).contains("dynamic_batching"));
    config.facts.host_inputs.push("a\"b".into());
    assert!(!filled(&config, &[-1, 3]).contains("input {"));
}

#[test]
fn configured_tensors_decide_batching() {
    let decl = |dims: &[i64]| Decl {
        name: "y".into(),
        dtype: dtype::STRING,
        dims: dims.to_vec(),
        model_dims: dims.to_vec(),
        optional: false,
    };
    let mut config = named();
    config.outputs.push(decl(&[-1, 3]));
    let text = filled(&config, &[-1, 3]);
    assert!(text.contains("dims: [ -1, 3 ]") && !text.contains("max_batch"), "{text}");
    config.outputs[0] = decl(&[3]);
    assert!(filled(&config, &[-1, 3]).contains("max_batch_size: 4"));
    config.inputs.push(decl(&[3]));
    assert!(!is_needed(&config));
}

#[test]
fn the_setting() {
    assert_eq!(default_batch(None), Ok(4));
    assert_eq!(default_batch(Some("0")), Ok(0));
    assert!(default_batch(Some("many")).unwrap_err().text.contains(SETTING));
    assert!(!patch(&named(), &signature(&[-1, 3]), 1).unwrap().unwrap().contains("dynamic"));
    assert!(!patch(&named(), &signature(&[-1, 3]), 0).unwrap().unwrap().contains("max_batch"));
}
