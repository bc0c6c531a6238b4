//! Unit tests of `complete.rs`.

use super::*;
use trtserver_framework::config::ConfiguredTensor;

const WIDTHS: ModelWidths =
    ModelWidths { features: 4, scores: 1, leaves: 5, contributions: 5, scores_are_classes: false };

fn tensor(dims: &[i64]) -> Vec<ConfiguredTensor> {
    vec![ConfiguredTensor { model_dims: dims.to_vec(), ..Default::default() }]
}

#[test]
fn what_a_configuration_omits_is_added() {
    const INPUT: &str = "input { name: \"input__0\" data_type: TYPE_FP32 dims: [ 4 ] }\n";
    const OUTPUT: &str = "output { name: \"output__0\" data_type: TYPE_FP32 dims: [ 1 ] }\n";
    let limit = "max_batch_size: 64\ndynamic_batching { }\n";
    let with = |max_batch_size, inputs: &[i64], outputs: &[i64]| Config {
        max_batch_size,
        inputs: if inputs.is_empty() { Vec::new() } else { tensor(inputs) },
        outputs: if outputs.is_empty() { Vec::new() } else { tensor(outputs) },
        ..Config::default()
    };
    for (config, batch, expected) in [
        (with(0, &[], &[]), 64, format!("{limit}{INPUT}{OUTPUT}")),
        (with(8, &[], &[]), 64, format!("dynamic_batching {{ }}\n{INPUT}{OUTPUT}")),
        (with(1, &[4], &[]), 64, OUTPUT.to_owned()),
        (with(0, &[4], &[]), 64, format!("{limit}{OUTPUT}")),
        (with(0, &[-1, 4], &[]), 64, OUTPUT.replace("[ 1 ]", "[ -1, 1 ]")),
        (with(0, &[], &[]), 0, format!("{INPUT}{OUTPUT}").replace("[ ", "[ -1, ")),
        (with(1, &[4], &[1]), 64, String::new()),
    ] {
        let found = config_patch(&config, &WIDTHS, &Parameters::default(), batch);
        assert_eq!(found.unwrap_or_default(), expected);
    }
}

#[test]
fn probabilities_of_two_classes_are_a_pair() {
    let parameters = Parameters { probabilities: true, ..Parameters::default() };
    let text = config_patch(&Config::default(), &WIDTHS, &parameters, 8).unwrap();
    assert!(text.contains("\"output__0\" data_type: TYPE_FP32 dims: [ 2 ]"), "{text}");
}
