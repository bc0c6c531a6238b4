//! Unit tests of `plan.rs`.

use super::*;

const BINARY: ModelWidths =
    ModelWidths { features: 4, scores: 1, leaves: 5, contributions: 5, scores_are_classes: false };
const THREE: ModelWidths = ModelWidths {
    features: 4,
    scores: 3,
    leaves: 15,
    contributions: 15,
    scores_are_classes: false,
};

fn tensor(name: &str, dtype: u32, dims: &[i64]) -> ConfiguredTensor {
    let (dims, model_dims) = (dims.to_vec(), dims.to_vec());
    ConfiguredTensor { name: name.to_owned(), dtype, dims, model_dims, ..Default::default() }
}

fn config(rows: usize, input: &[i64], outputs: Vec<ConfiguredTensor>) -> Config {
    Config {
        model: "m".to_owned(),
        max_batch_size: rows,
        inputs: vec![tensor(INPUT, dtype::FP32, input)],
        outputs,
        ..Config::default()
    }
}

fn scores(dims: &[i64]) -> Vec<ConfiguredTensor> {
    vec![tensor(SCORES, dtype::FP32, dims)]
}

fn asks(classes: bool, probabilities: bool) -> Parameters {
    Parameters { classes, probabilities, ..Parameters::default() }
}

#[test]
fn scores_in_all_forms() {
    let class = ScoreForm::Class { threshold: 0.5 };
    for (widths, parameters, dims, expected) in [
        (BINARY, asks(false, false), 1, Some(ScoreForm::Plain)),
        (BINARY, asks(true, false), 1, Some(class)),
        (BINARY, asks(true, true), 2, Some(ScoreForm::Pair)),
        (BINARY, asks(true, true), 1, Some(ScoreForm::Plain)),
        (BINARY, asks(false, false), 2, None),
        (THREE, asks(false, false), 3, Some(ScoreForm::Plain)),
        (THREE, asks(true, true), 3, Some(ScoreForm::Plain)),
        (THREE, asks(true, false), 1, Some(class)),
        (THREE, asks(true, false), 3, None),
    ] {
        let found = plan_model(&config(8, &[4], scores(&[dims])), &widths, &parameters);
        assert_eq!(found.ok().map(|plan| plan.outputs[0].form), expected, "{parameters:?} {dims}");
    }
    let softmax = ModelWidths { scores_are_classes: true, ..BINARY };
    let found = plan_model(&config(8, &[4], scores(&[1])), &softmax, &asks(true, false)).unwrap();
    assert_eq!(found.outputs[0].form, ScoreForm::Plain);
}

#[test]
fn shapes_of_inputs() {
    for (rows, dims, expected) in [
        (8, &[4][..], Some(true)),
        (8, &[-1], Some(true)),
        (8, &[2, 2], Some(true)),
        (8, &[3], None),
        (0, &[4], Some(false)),
        (0, &[1, 4], Some(false)),
        (0, &[-1, 4], Some(true)),
        (0, &[-1, -1], Some(true)),
        (0, &[7, 4], Some(true)),
        (0, &[-1], None),
        (0, &[-1, 3], None),
    ] {
        assert_eq!(find_rows(dims, rows > 0, 4), expected, "{rows} {dims:?}");
    }
}

#[test]
fn outputs_by_name() {
    let outputs = vec![
        tensor("score", dtype::FP64, &[-1]),
        tensor("shap__output", dtype::FP32, &[3, 5]),
        tensor("treeshap_output", dtype::FP32, &[15]),
        tensor("leaf__output", dtype::INT32, &[-1, 3]),
    ];
    let plan = plan_model(&config(8, &[4], outputs), &THREE, &asks(false, false)).unwrap();
    let found: Vec<_> = plan.outputs.iter().map(|own| (own.task, own.row.clone())).collect();
    let expected = [
        (Task::Scores, vec![3]),
        (Task::Contributions, vec![3, 5]),
        (Task::Contributions, vec![15]),
        (Task::Leaves, vec![5, 3]),
    ];
    assert_eq!(found, expected);
    let rows = plan_model(&config(0, &[-1, 4], scores(&[-1, 3])), &THREE, &asks(false, false));
    assert_eq!(rows.unwrap().outputs[0].row, [3]);
}

#[test]
fn errors_name_tensor_and_expectation() {
    let two = Config {
        inputs: vec![tensor("a", 11, &[4]), tensor("b", 11, &[4])],
        ..config(8, &[4], scores(&[1]))
    };
    let int =
        Config { inputs: vec![tensor("a", dtype::INT64, &[4])], ..config(8, &[4], scores(&[1])) };
    for (config, expected) in [
        (two, "configuration expects 2 inputs, model provides 1"),
        (int, "input 'a' has data type TYPE_INT64, expected TYPE_FP32 or TYPE_FP64"),
        (
            config(8, &[3], scores(&[1])),
            "input 'input__0' has dims [3], and the model has 4 features: expected dims [4]",
        ),
        (config(8, &[4], Vec::new()), "configuration expects 0 outputs"),
        (
            config(8, &[4], scores(&[2])),
            "output 'output__0' has dims [2], expected [1] (by the model",
        ),
        (
            config(8, &[4], vec![tensor("leaf__output", dtype::INT64, &[5])]),
            "expected TYPE_INT32 or TYPE_FP32 or TYPE_FP64",
        ),
        (
            config(8, &[4], vec![tensor("shap__output", dtype::FP32, &[4])]),
            "output 'shap__output' has dims [4], expected [5]",
        ),
        (
            config(0, &[-1, 4], scores(&[-1, 2])),
            "expected [1] (by the model and the parameters output_class and predict_proba) after the dimension of the rows",
        ),
    ] {
        let text = plan_model(&config, &BINARY, &Parameters::default()).unwrap_err().text;
        assert!(
            text.starts_with("unable to load model 'm': ") && text.contains(expected),
            "{text}"
        );
    }
}
