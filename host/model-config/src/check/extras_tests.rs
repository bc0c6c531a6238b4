//! Unit tests of `extras.rs`.

use super::super::super::testing::parse;
use super::*;

fn check_errors(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let config = parse(&format!(
            "name: 'm' input {{ name: 'i' }} output {{ name: 'o' }} \
             output {{ name: 'p' }} {text}"
        ));
        let got = check_extras(&config).into_iter().next().map(|e| e.message).unwrap_or_default();
        assert_eq!(got, *expected, "{text}");
    }
}

#[test]
fn warmup_rules() {
    let input = |fields: &str| {
        format!(
            "model_warmup {{ name: 's' batch_size: 1 inputs {{ key: 'i' value {{ {fields} }} }} }}"
        )
    };
    check_errors(&[
        (&input("dims: 1 zero_data: true"), ""),
        (
            &input("dims: [ 1, -1 ] zero_data: true"),
            "warmup setting expects all variable-size dimensions are specified for input 'i' \
             for m",
        ),
        (&input("").replace("batch_size: 1", ""), ""),
        (&input("dims: 1"), "warmup setting expects input 'i' to have input_data_type set for m"),
    ]);
}

#[test]
fn response_cache_rules() {
    let with = |what: &str| {
        format!(
            "Response Cache does not currently support model m with {what}. Please disable \
             the response cache."
        )
    };
    let decoupled = "model_transaction_policy { decoupled: true }";
    check_errors(&[
        ("response_cache { enable: true }", ""),
        ("sequence_batching {} response_cache { enable: false }", ""),
        (
            "sequence_batching {} response_cache { enable: true }",
            &with("sequence batching scheduler"),
        ),
        (
            &format!("{decoupled} response_cache {{ enable: true }}"),
            &with("'decoupled' transaction policy"),
        ),
    ]);
}
