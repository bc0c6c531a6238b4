//! Predictions, beside those of the Python packages.

use super::*;
use trtserver_plugin_testkit::{Number, values};

/// Equal, or different in the last digits where a library's exponential function rounds by the
/// processor that it runs on.
#[track_caller]
fn assert_equal(what: &str, found: &[f64], expected: &[f64], exact: bool) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        let close = (a - b).abs() <= 4e-7 * b.abs().max(0.1);
        assert!(a == b || !exact && close, "{what}: value {at} is {a}, expected {b}");
    }
}

fn output<T: Number + Into<f64>>(outcome: &Outcome, name: &str) -> Vec<f64> {
    assert_eq!(outcome.result, Ok(()));
    let found = outcome.responses[0].output(name).unwrap_or_else(|| panic!("no {name}"));
    values::<T>(&found.data).into_iter().map(Into::into).collect()
}

#[test]
fn all_models_predict_as_their_python_packages() {
    let (_session, backend) = start();
    let expected = Expected::read();
    for name in expected.names() {
        let of = |what: &str| expected.values(name, what);
        let (scores, leaves, shap) = (of("scores"), of("leaves"), of("shap"));
        let width = |all: &[f64]| [(all.len() / 20) as i64];
        let mut outputs = vec![
            tensor("output__0", dtype::FP64, &width(&scores)),
            tensor("leaf__output", dtype::INT32, &width(&leaves)),
        ];
        if !shap.is_empty() {
            outputs.push(tensor("treeshap_output", dtype::FP64, &width(&shap)));
        }
        let model = load(&backend, &spec(&file_of(name), dtype::FP32, outputs)).unwrap();
        let has_exponential = ["binary", "three"].iter().any(|kind| name.ends_with(kind));
        // All rows through the interface for matrices, and each through that for single rows.
        for rows in [20, 1] {
            for (at, part) in expected.rows.chunks(rows * 6).enumerate() {
                let mut asked = request(part).request_output("output__0");
                asked = asked.request_output("leaf__output").request_output("treeshap_output");
                let outcome = model.run(&[asked]).remove(0);
                let expect = |all: &[f64]| {
                    let width = all.len() / 20;
                    all[at * rows * width..(at + 1) * rows * width].to_vec()
                };
                let found = output::<f64>(&outcome, "output__0");
                assert_equal(name, &found, &expect(&scores), !has_exponential);
                let found = output::<i32>(&outcome, "leaf__output");
                assert_equal(name, &found, &expect(&leaves), true);
                if !shap.is_empty() {
                    let found = output::<f64>(&outcome, "treeshap_output");
                    assert_equal(name, &found, &expect(&shap), true);
                }
            }
        }
    }
}

#[test]
fn requests_of_a_batch_get_their_rows() {
    let (_session, backend) = start();
    let expected = Expected::read();
    for name in ["lgbm_three", "xgb_three"] {
        let outputs = vec![tensor("output__0", dtype::FP32, &[3])];
        let model = load(&backend, &spec(&file_of(name), dtype::FP32, outputs)).unwrap();
        let all: Vec<f64> =
            expected.values(name, "scores").iter().map(|own| f64::from(*own as f32)).collect();
        let part = |from: usize, to: usize| {
            request(&expected.rows[from * 6..to * 6]).request_output("output__0")
        };
        let outcomes = model.run(&[part(0, 3), part(3, 4), part(4, 20)]);
        for (outcome, (from, to)) in outcomes.iter().zip([(0, 3), (3, 4), (4, 20)]) {
            let found = output::<f32>(outcome, "output__0");
            assert_equal(name, &found, &all[from * 3..to * 3], false);
        }
        // One that is cancelled ends by itself, and one that asks for nothing gets no output.
        let nothing = request(&expected.rows[..6]);
        let outcomes = model.run(&[part(0, 1).cancelled(), nothing, part(1, 2)]);
        assert!(outcomes[0].result.as_ref().unwrap_err().text.contains("cancelled"));
        assert_eq!((outcomes[1].responses.len(), &outcomes[1].result), (1, &Ok(())));
        assert_equal(name, &output::<f32>(&outcomes[2], "output__0"), &all[3..6], false);
    }
}

/// More rows than a chunk has, and enough work for two threads.
#[test]
fn a_hundred_thousand_rows_are_those_of_the_pattern() {
    let (_session, backend) = start();
    let expected = Expected::read();
    let many = expected.rows.repeat(5_000);
    for name in ["lgbm_binary", "xgb_binary", "xgb_dart"] {
        let outputs = vec![tensor("output__0", dtype::FP64, &[1])];
        let model = load(&backend, &spec(&file_of(name), dtype::FP32, outputs)).unwrap();
        let few = output::<f64>(
            &model.run(&[request(&expected.rows).request_output("output__0")])[0],
            "output__0",
        );
        for _ in 0..2 {
            let outcome = model.run(&[request(&many).request_output("output__0")]).remove(0);
            assert_equal(name, &output::<f64>(&outcome, "output__0"), &few.repeat(5_000), true);
        }
    }
}

#[test]
fn classes_and_probabilities() {
    let (_session, backend) = start();
    let expected = Expected::read();
    let run = |name: &str, width: i64, given: &[(&str, &str)]| {
        let outputs = vec![tensor("output__0", dtype::FP32, &[width])];
        let mut spec = spec(&file_of(name), dtype::FP32, outputs);
        spec.parameters = given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let model = load(&backend, &spec).unwrap();
        let outcomes = model.run(&[request(&expected.rows).request_output("output__0")]);
        output::<f32>(&outcomes[0], "output__0")
    };
    let class = ("output_class", "true");
    for name in ["lgbm_binary", "xgb_binary"] {
        let scores = expected.values(name, "scores");
        for threshold in ["0.5", "0.3", "0.8"] {
            let above = |score: &f64| f64::from(u8::from(*score > threshold.parse().unwrap()));
            let classes: Vec<f64> = scores.iter().map(above).collect();
            assert_eq!(run(name, 1, &[class, ("threshold", threshold)]), classes, "{name}");
        }
        let pairs = run(name, 2, &[class, ("predict_proba", "true")]);
        let expected: Vec<f64> = scores.iter().flat_map(|score| [1.0 - score, *score]).collect();
        assert_equal(name, &pairs, &expected, false);
    }
    for name in ["lgbm_three", "xgb_three"] {
        let largest =
            |row: &[f64]| (0..3).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as f64;
        let classes: Vec<f64> = expected.values(name, "scores").chunks(3).map(largest).collect();
        assert_eq!(run(name, 1, &[class]), classes, "{name}");
    }
    // A model that yields classes, and is asked for probabilities: it was trained as `xgb_three`.
    assert_eq!(run("xgb_class", 1, &[class]), expected.values("xgb_class", "scores"));
    let probabilities = run("xgb_class", 3, &[class, ("predict_proba", "true")]);
    assert_equal("xgb_class", &probabilities, &expected.values("xgb_three", "scores"), false);
}

#[test]
fn rows_of_fp64_and_models_without_batches() {
    let (_session, backend) = start();
    let expected = Expected::read();
    let scores = expected.values("lgbm_regression", "scores");
    let doubles: Vec<f64> = expected.rows.iter().map(|own| f64::from(*own)).collect();
    let outputs = vec![tensor("output__0", dtype::FP64, &[1])];
    let mut double = spec(&file_of("lgbm_regression"), dtype::FP64, outputs);
    let model = load(&backend, &double).unwrap();
    let rows = |shape: &[i64], data: &[f64]| {
        let rows = Request::new(1.max(shape[0] as u32));
        rows.input("input__0", dtype::FP64, shape, &bytes(data)).request_output("output__0")
    };
    let outcome = model.run(&[rows(&[20, 6], &doubles)]).remove(0);
    assert_equal("rows", &output::<f64>(&outcome, "output__0"), &scores, true);

    double.max_batch_size = 0;
    let model = load(&backend, &double).unwrap();
    let one = Request::new(1).input("input__0", dtype::FP64, &[6], &bytes(&doubles[..6]));
    let outcome = model.run(&[one.request_output("output__0")]).remove(0);
    assert_equal("one", &output::<f64>(&outcome, "output__0"), &scores[..1], true);

    double.inputs = vec![tensor("input__0", dtype::FP64, &[-1, -1])];
    double.outputs = vec![tensor("output__0", dtype::FP64, &[-1, 1])];
    let model = load(&backend, &double).unwrap();
    let ask = |shape: &[i64], data: &[f64]| {
        let input = Request::new(1).input("input__0", dtype::FP64, shape, &bytes(data));
        model.run(&[input.request_output("output__0")]).remove(0)
    };
    assert_equal("rows", &output::<f64>(&ask(&[20, 6], &doubles), "output__0"), &scores, true);
    let refused = ask(&[24, 5], &doubles).result.unwrap_err().text;
    let text = "unexpected shape for input 'input__0' for model 'M': [24,5] holds rows of 5 features, expected 6";
    assert_eq!(refused, text);
}
