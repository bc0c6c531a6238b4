//! Unit tests of `data.rs` and its parts.

use super::json::parse_json;
use super::values::{to_bf16, to_fp16};
use super::{InputStreams, Item, StringOptions, TensorData, load_input};
use crate::model::{MeasuredModel, ModelTensor, Scheduling};
use crate::settings::InputData;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn model(inputs: &[(&str, &str, &[i64])]) -> MeasuredModel {
    let tensor = |(name, datatype, shape): &(&str, &str, &[i64])| ModelTensor {
        name: (*name).to_owned(),
        datatype: (*datatype).to_owned(),
        shape: shape.to_vec(),
    };
    MeasuredModel {
        name: "m".to_owned(),
        version: String::new(),
        max_batch_size: 0,
        inputs: inputs.iter().map(tensor).collect(),
        outputs: Vec::new(),
        scheduling: Scheduling::Default,
        decoupled: false,
        composing: Vec::new(),
    }
}

fn strings() -> StringOptions {
    StringOptions { length: 3, text: None }
}

fn parsed(model: &MeasuredModel, json: &Value) -> Result<Vec<Vec<Item>>, String> {
    let mut streams = Vec::new();
    parse_json(model, &BTreeMap::new(), json, &mut streams).map(|()| streams)
}

#[test]
fn generated_data_fits_the_model() {
    let model = model(&[("A", "FP32", &[-1, 2]), ("S", "BYTES", &[2]), ("B", "BOOL", &[64])]);
    let shapes = BTreeMap::from([("A".to_owned(), vec![3, 2])]);
    let zero = load_input(&model, &InputData::Zero, &shapes, &strings()).unwrap();
    let item = &zero.streams[0][0];
    assert_eq!(item[0], TensorData { shape: vec![3, 2], bytes: vec![0; 24] });
    assert_eq!(item[1].bytes.len(), 2 * (4 + 3));
    let random = load_input(&model, &InputData::Random, &shapes, &strings()).unwrap();
    let item = &random.streams[0][0];
    let reals = item[0].bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
    assert!(reals.clone().all(|real| (0.0..1.0).contains(&real)) && reals.sum::<f32>() > 0.0);
    assert!(item[2].bytes.iter().all(|byte| *byte < 2) && item[2].bytes.contains(&1));
    assert_eq!(random, load_input(&model, &InputData::Random, &shapes, &strings()).unwrap());
    let text = StringOptions { length: 3, text: Some("xy".to_owned()) };
    let given = load_input(&model, &InputData::Random, &shapes, &text).unwrap();
    assert_eq!(given.streams[0][0][1].bytes, b"\x02\0\0\0xy".repeat(2));
}

#[test]
fn wrong_shapes_are_refused() {
    let model = model(&[("A", "FP32", &[-1, 2])]);
    let with = |name: &str, shape: &[i64]| {
        let shapes = BTreeMap::from([(name.to_owned(), shape.to_vec())]);
        load_input(&model, &InputData::Zero, &shapes, &strings()).unwrap_err()
    };
    assert!(with("X", &[1]).contains("has no input 'X'"));
    assert!(with("A", &[1, 3]).contains("[1, 3] does not fit the model's [-1, 2]"));
    assert!(with("A", &[1 << 40, 2]).contains("too large"));
    let missing = load_input(&model, &InputData::Zero, &BTreeMap::new(), &strings()).unwrap_err();
    assert!(missing.contains("input A contains dynamic shape"), "{missing}");
}

#[test]
fn json_steps_streams_and_forms_are_read() {
    let model = model(&[("A", "INT16", &[2]), ("S", "BYTES", &[1])]);
    let step = |a: Value, s: &str| json!({ "A": a, "S": [s] });
    let item = |a: [i16; 2], s: &str| {
        let bytes = a.iter().flat_map(|value| value.to_le_bytes()).collect();
        let text = [&(s.len() as u32).to_le_bytes(), s.as_bytes()].concat();
        vec![TensorData { shape: vec![2], bytes }, TensorData { shape: vec![1], bytes: text }]
    };
    let steps = json!({ "data": [step(json!([1, -2]), "a"), step(json!([[3], [4]]), "bc")] });
    assert_eq!(parsed(&model, &steps), Ok(vec![vec![item([1, -2], "a"), item([3, 4], "bc")]]));
    let streams = json!({ "count": 2, "data": [
        [step(json!({ "b64": "AQACAA==" }), "x")],
        [step(json!({ "content": [5, 6], "shape": [2] }), ""), step(json!([7, 8.0]), "y")],
        [step(json!([9, 9]), "left out")],
    ] });
    let expected = vec![vec![item([1, 2], "x")], vec![item([5, 6], ""), item([7, 8], "y")]];
    assert_eq!(parsed(&model, &streams), Ok(expected));
}

#[test]
fn wrong_json_is_refused_with_its_place() {
    let model = model(&[("A", "UINT8", &[2])]);
    let cases = [
        (json!({}), "doesn't contain data field"),
        (json!({ "data": 1 }), "must be a list"),
        (json!({ "data": [] }), "is empty"),
        (json!({ "data": [[]] }), "stream 0 has no steps"),
        (json!({ "count": "x", "data": [1] }), "should be of type int"),
        (
            json!({ "data": [[{ "B": [1, 2] }]] }),
            "missing input A ( Location stream id: 0, step id: 0)",
        ),
        (json!({ "data": [{ "A": [1] }] }), "Expected: 2, Got: 1"),
        (
            json!({ "data": [{ "A": [1, 2] }, { "A": [1, 256] }] }),
            "256 is not a value of type UINT8 ( Location stream id: 0, step id: 1)",
        ),
        (json!({ "data": [{ "A": [1, "x"] }] }), "not a value of type UINT8"),
        (json!({ "data": [{ "A": { "b64": 4 } }] }), "should be of type string"),
        (json!({ "data": [{ "A": { "b64": "AAAA" } }] }), "Expected: 2 bytes, Got: 3 bytes"),
        (json!({ "data": [{ "A": { "b64": "?" } }] }), "invalid base64"),
        (json!({ "data": [{ "A": "x" }] }), "Expected an array or b64 string"),
        (json!({ "data": [{ "A": { "shape": [3], "content": [1, 2, 3] } }] }), "does not fit"),
    ];
    for (json, text) in cases {
        let problem = parsed(&model, &json).unwrap_err();
        assert!(problem.contains(text), "{problem}, expected {text}");
    }
}

#[test]
fn folders_have_a_file_for_each_input() {
    let model = model(&[("A", "INT32", &[1]), ("S", "BYTES", &[2])]);
    let folder = tempfile::tempdir().unwrap();
    let source = InputData::Files(vec![folder.path().to_owned()]);
    let read = || load_input(&model, &source, &BTreeMap::new(), &strings());
    assert!(read().unwrap_err().contains("failed to open file"));
    std::fs::write(folder.path().join("A"), [1, 2, 3]).unwrap();
    assert!(
        read()
            .unwrap_err()
            .contains("requires 4 bytes for each batch, but provided data has 3 bytes")
    );
    std::fs::write(folder.path().join("A"), [1, 2, 3, 4]).unwrap();
    std::fs::write(folder.path().join("S"), "one\n").unwrap();
    assert!(
        read().unwrap_err().contains("requires 2 strings for each batch, but provided data has 1")
    );
    std::fs::write(folder.path().join("S"), "one\ntwo\n").unwrap();
    let a = TensorData { shape: vec![1], bytes: vec![1, 2, 3, 4] };
    let s = TensorData { shape: vec![2], bytes: b"\x03\0\0\0one\x03\0\0\0two".to_vec() };
    assert_eq!(read(), Ok(InputStreams { streams: vec![vec![vec![a, s]]] }));
}

#[test]
fn half_precision_is_rounded_to_nearest_even() {
    let half = [
        (0.0, 0x0000),
        (-0.0, 0x8000),
        (1.0, 0x3c00),
        (-2.0, 0xc000),
        (65_504.0, 0x7bff),
        (65_520.0, 0x7c00),
        (5.960_464_5e-8, 0x0001),
        (6.103_515_6e-5, 0x0400),
        (1.000_488_3, 0x3c00),
        (1.001_464_8, 0x3c02),
        (f32::INFINITY, 0x7c00),
    ];
    for (value, bits) in half {
        assert_eq!(to_fp16(value), bits, "{value}");
    }
    assert_eq!(to_fp16(f32::NAN) & 0x7c00, 0x7c00);
    let brain = [(1.0, 0x3f80), (-1.0, 0xbf80), (1.003_906_2, 0x3f80), (3.0e38, 0x7f62)];
    for (value, bits) in brain {
        assert_eq!(to_bf16(value), bits, "{value}");
    }
}
