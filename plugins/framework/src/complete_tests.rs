//! Unit tests of `complete.rs`.

use super::*;
use crate::check::tests::{Owned, tensor};
use trtserver_plugin_api::abi::types::dtype;

fn model(dims: Option<&[i64]>) -> Owned {
    Owned {
        inputs: vec![tensor("a\"b", Element::Known(dtype::FP32), dims)],
        outputs: vec![
            tensor("y", Element::Known(dtype::STRING), dims),
            tensor("map", Element::NotDense("a map"), None),
        ],
        ..Owned::default()
    }
}

fn try_patch(config: &Config, dims: Option<&[i64]>, default: usize) -> Result<String, String> {
    let text = patch(config, &model(dims).tensors(), default);
    text.map(Option::unwrap_or_default).map_err(|fault| fault.text)
}

fn filled(config: &Config, dims: &[i64]) -> String {
    try_patch(config, Some(dims), 4).unwrap()
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
    assert!(text.contains("dynamic_batching { }"), "{text}");
    let text = try_patch(&config, Some(&[1, 3]), 4).unwrap_err();
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
        ..Decl::default()
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
fn dimension_of_0_is_completed_as_variable() {
    assert!(filled(&named(), &[3, 0]).contains("dims: [ 3, -1 ] }"));
    assert!(filled(&named(), &[-1, 0]).contains("max_batch_size: 4\n"));
}

#[test]
fn the_setting() {
    assert_eq!(default_batch(None, 4), Ok(4));
    assert_eq!(default_batch(Some("0"), 4), Ok(0));
    assert!(default_batch(Some("many"), 4).unwrap_err().text.contains(SETTING));
    assert!(!try_patch(&named(), Some(&[-1, 3]), 1).unwrap().contains("dynamic"));
    assert!(!try_patch(&named(), Some(&[-1, 3]), 0).unwrap().contains("max_batch"));
}

#[test]
fn tensors_that_a_configuration_cannot_express_are_refused() {
    let text = try_patch(&named(), None, 4).unwrap_err();
    assert!(text.contains("input 'a\"b' has an unknown number of dimensions, which no"), "{text}");
    let refusal = |element| {
        let model = Owned { inputs: vec![tensor("x", element, Some(&[3]))], ..Owned::default() };
        patch(&named(), &model.tensors(), 4).unwrap_err().text
    };
    let text = refusal(Element::Foreign("complex64".into()));
    assert!(text.contains("input 'x' has elements of complex64, which no"), "{text}");
    assert!(refusal(Element::NotDense("a map")).contains("input 'x' is not a dense tensor"));
}
