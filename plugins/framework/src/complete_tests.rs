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
    let additions = config_patch(config, &model(dims).tensors(), default, || Ok(()));
    additions.map(|additions| additions.text.unwrap_or_default()).map_err(|fault| fault.text)
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
    let decl = |dims: &[i64]| ConfiguredTensor {
        name: "y".into(),
        dtype: dtype::STRING,
        dims: dims.to_vec(),
        model_dims: dims.to_vec(),
        ..ConfiguredTensor::default()
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

/// The notes of a completion without a batch size, whose only reason is `why`.
fn unbatched(model: &Owned, rows: Result<(), String>) -> String {
    let ConfigAdditions { text, notes } =
        config_patch(&named(), &model.tensors(), 4, || rows).unwrap();
    assert!(!text.unwrap_or_default().contains("batch"));
    notes.join("\n")
}

#[test]
fn first_dimensions_of_several_names_are_not_a_batch() {
    for (x, y, why) in [
        (
            Some("batch"),
            Some("found"),
            "of input 'x' is named 'batch' in the file, that of output 'y' is named 'found'",
        ),
        (Some("batch"), None, "that of output 'y' has no name"),
        (
            None,
            Some("found"),
            "of input 'x' has no name in the file, that of output 'y' is named 'found'",
        ),
    ] {
        let tensor = |name, dim_name| {
            tensor(name, Element::Known(dtype::FP32), Some(&[-1, 3])).named(dim_name)
        };
        let mut model = Owned {
            inputs: vec![tensor("x", x)],
            outputs: vec![tensor("y", y)],
            ..Owned::default()
        };
        let note = unbatched(&model, Ok(()));
        assert!(
            note.starts_with("max_batch_size is completed as 0: the first dimension"),
            "{note}"
        );
        assert!(note.contains(why), "{note}");
        // The user's batch size holds, but requests of several clients are not put into one batch
        // unasked.
        let config = Config { max_batch_size: 8, ..named() };
        let run = || panic!("a configured batch size needs no run");
        let ConfigAdditions { text, notes } =
            config_patch(&config, &model.tensors(), 4, run).unwrap();
        assert!(
            text.unwrap().starts_with("input { name: \"x\" data_type: TYPE_FP32 dims: [ 3 ] }")
        );
        assert!(notes[0].starts_with("dynamic_batching is not completed: "), "{notes:?}");
        model.outputs = vec![tensor("y", x)];
        assert_eq!(first_line(&model), "max_batch_size: 4");
    }
}

fn first_line(model: &Owned) -> String {
    let text = config_patch(&named(), &model.tensors(), 4, || Ok(())).unwrap().text.unwrap();
    text.lines().next().unwrap().to_owned()
}

#[test]
fn a_run_of_several_rows_decides() {
    let note = unbatched(&model(Some(&[-1, 3])), Err("it fails".into()));
    assert!(
        note.starts_with("max_batch_size is completed as 0: it fails; a configuration"),
        "{note}"
    );
    assert!(note.ends_with(
        "output 'map' is a map and left out: only dense tensors can be sent to clients"
    ));
    // It is not asked for where the batch size is decided.
    let run = || panic!("no run");
    for (dims, default) in [(&[2, 3][..], 4), (&[-1, 3], 0)] {
        let notes =
            config_patch(&named(), &model(Some(dims)).tensors(), default, run).unwrap().notes;
        assert_eq!(notes.len(), 1 + usize::from(default > 0), "{notes:?}");
    }
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
        config_patch(&named(), &model.tensors(), 4, || Ok(())).unwrap_err().text
    };
    let text = refusal(Element::Foreign("complex64".into()));
    assert!(text.contains("input 'x' has elements of complex64, which no"), "{text}");
    assert!(refusal(Element::NotDense("a map")).contains("input 'x' is not a dense tensor"));
}

#[test]
fn model_without_an_output_for_clients_is_refused() {
    let maps = ["first", "second"].map(|name| tensor(name, Element::NotDense("a map"), None));
    let model = Owned { outputs: maps.into(), ..model(Some(&[-1, 3])) };
    let runs = || -> Result<(), String> { panic!("a run has no output to ask for") };
    let refused = config_patch(&named(), &model.tensors(), 4, runs).unwrap_err();
    let text = "the model has no output that can be sent: output 'first' is a map and left out: only dense tensors";
    assert!(refused.text.starts_with(text), "{}", refused.text);
}
