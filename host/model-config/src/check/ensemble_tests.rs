//! Unit tests of `ensemble.rs`.

use super::super::super::testing::{check_errors, parse};
use super::*;

fn step(inputs: &[&str], outputs: &[&str]) -> String {
    let map = |field: &str, tensors: &[&str]| -> String {
        let entry = |(i, t)| format!("{field} {{ key: 'k{i}' value: '{t}' }} ");
        tensors.iter().enumerate().map(entry).collect()
    };
    let (inputs, outputs) = (map("input_map", inputs), map("output_map", outputs));
    format!("step {{ model_name: 's' {inputs} {outputs} }} ")
}

#[test]
fn ensemble_platform_requires_ensemble_scheduling() {
    let steps = "ensemble_scheduling { step {} }";
    check_errors(
        "name: 'm'",
        &[
            (
                "platform: 'ensemble' backend: 'b'",
                "Ensemble model 'm' must have platform type 'ensemble' and empty backend type",
            ),
            (
                "platform: 'ensemble'",
                "ensemble scheduling must be set for ensemble m whose platform is ensemble",
            ),
            (
                &format!("backend: 'b' {steps}"),
                "ensemble scheduling cannot be set for model 'm' whose platform is not \
                 ensemble",
            ),
            (
                &format!("platform: 'ensemble' {steps} instance_group {{}}"),
                "instance group should not be specified for ensemble 'm'",
            ),
            (
                &format!("platform: 'ensemble' {steps} optimization {{}}"),
                "optimization should not be specified for ensemble 'm'",
            ),
            (
                &format!("platform: 'ensemble' {steps} model_warmup {{}}"),
                "model_warmup can not be specified for ensemble 'm'",
            ),
            ("platform: 'ensemble' ensemble_scheduling {}", "must specify 'step' for ensemble 'm'"),
            (
                &format!("platform: 'ensemble' {steps}"),
                "must specify 'model_name' in step 0 of ensemble 'm'",
            ),
            (
                "platform: 'ensemble' ensemble_scheduling { step { model_name: 's' } }",
                "must specify 'input_map' in step 0 of ensemble 'm'",
            ),
            (
                "platform: 'ensemble' ensemble_scheduling { step { model_name: 's' \
                 input_map { key: 'k' value: 'a' } } }",
                "must specify 'output_map' in step 0 of ensemble 'm'",
            ),
        ],
    );
}

#[test]
fn tensors_must_be_connected() {
    // Steps as (reads, writes) of an ensemble with input `in` and output `out`; error.
    type Step = (&'static [&'static str], &'static [&'static str]);
    let rows: &[(&[Step], &str)] = &[
        (&[(&["in"], &["out"])], ""),
        (&[(&["t"], &["out"]), (&["in"], &["t"])], ""),
        (&[(&["in"], &["a", "b"]), (&["a", "b", "in"], &["out"])], ""),
        (&[(&["x"], &["out"])], "ensemble input 'in' for ensemble m' is not used"),
        (&[(&["in"], &["t"])], "ensemble output 'out' for ensemble m' is not used"),
        (&[(&["in", "out"], &["t"])], "output 'out' for ensemble 'm' is not written"),
        (
            &[(&["in", "x"], &["out"])],
            "output 'out' for ensemble 'm' is not written: at least one of its depending \
             tensors, 'x', is not connected",
        ),
        (
            // The origin of the missing tensor is named.
            &[(&["x"], &["a"]), (&["a"], &["b"]), (&["in", "b"], &["out"])],
            "output 'out' for ensemble 'm' is not written: at least one of its depending \
             tensors, 'x', is not connected",
        ),
        (
            &[(&["in", "b"], &["a"]), (&["a"], &["b", "out"])],
            "output 'out' for ensemble 'm' is not written: at least one of its depending \
             tensors, 'a', is not connected",
        ),
        (&[(&["in"], &["out", "t"])], "ensemble tensor 't' is unused in ensemble 'm'"),
        (
            &[(&["in"], &["out"]), (&["in"], &["out"])],
            "ensemble tensor 'out' can appear in an output map only once for ensemble 'm' \
             step 1",
        ),
        (
            &[(&["in"], &["in", "out"])],
            "ensemble tensor 'in' can appear in an output map only once for ensemble 'm' \
             step 0",
        ),
    ];
    for (steps, expected) in rows {
        let steps: String = steps.iter().map(|(reads, writes)| step(reads, writes)).collect();
        let config = parse(&format!(
            "name: 'm' platform: 'ensemble' input {{ name: 'in' }} output {{ name: 'out' }} \
             ensemble_scheduling {{ {steps} }}"
        ));
        let got = check_ensemble(&config).map(|()| String::new()).unwrap_or_else(|e| e.message);
        assert_eq!(got, *expected, "{steps}");
    }
}
