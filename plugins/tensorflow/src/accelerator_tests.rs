//! Unit tests of `accelerator.rs`.

use super::*;
use trtserver_proto_wire::Fields;

fn parameters(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn parameters_become_attributes_of_the_optimizer() {
    let encoded =
        encode_node(&parameters(&[("max_cached_engines", "7"), ("precision_mode", "FP16")]))
            .unwrap();
    let optimizer = [10, 10, 200]
        .into_iter()
        .fold(&encoded[..], |message, number| Fields::new(message).bytes(number).next().unwrap());
    assert_eq!(Fields::new(optimizer).bytes(1).next(), Some(&b"TensorRTOptimizer"[..]));
    let entries: Vec<_> = Fields::new(optimizer)
        .bytes(2)
        .map(|entry| {
            let field = |number| Fields::new(entry).bytes(number).next().unwrap();
            (field(1), field(2))
        })
        .collect();
    let expected: [(&[u8], &[u8]); 2] =
        [(b"maximum_cached_engines", &[3 << 3, 7]), (b"precision_mode", b"\x12\x04FP16")];
    assert_eq!(entries, expected);
}

#[test]
fn unknown_parameters_and_values_are_refused() {
    for (key, value, expected) in [
        ("precision", "FP16", "unknown parameter 'precision'; known are: is_dynamic_op, "),
        (
            "precision_mode",
            "FP8",
            "parameter 'precision_mode' must be FP32, FP16 or INT8, not 'FP8'",
        ),
        (
            "minimum_segment_size",
            "few",
            "parameter 'minimum_segment_size' must be a number, not 'few'",
        ),
        ("is_dynamic_op", "2", "parameter 'is_dynamic_op' must be true or false, not '2'"),
    ] {
        let text = encode_node(&parameters(&[(key, value)])).unwrap_err();
        assert!(text.contains(expected), "{text}");
    }
}
